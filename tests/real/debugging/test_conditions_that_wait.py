"""Real ranks that wait in the condition of a barrier or differ breakpoint: whatever happens.

Rank 0 waits there, alone; the others come once they are let.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.engine import inputs
from dap_mux.pure.endpoint import Endpoint
from dap_mux.shell import sockets
from tests.real.driving import Driver, StartRanks, script
from tests.support.hosts.private_network import PrivateNetwork, possible, private_network
from tests.support.processes.commands import LIMIT, User, line_of
from tests.support.processes.ranks import Rank, Style
from tests.support.processes.waiting import until
from tests.support.session import Session, session

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
PROGRAM: Final = script("waits_at_a_line")
PASS: Final = line_of(PROGRAM, "pass")
DIFFER: Final = "differ: passed * 0"
FAR: Final = "127.0.0.9"  # the address that packets are lost of
NOTICED_WITHIN: Final = 60.0  # s: of a connection that ends without a word, by debugpy
styles = pytest.mark.parametrize("style", ["agent", "module"])


class Program:
    """The ranks, and the folder by which they are told what to do."""

    def __init__(self, folder: Path, ranks: list[Rank]) -> None:
        self._folder = folder
        self.ranks = ranks

    @property
    def ports(self) -> list[int]:
        return [rank.port for rank in self.ranks]

    def passed(self, rank: int) -> int:
        """How often a rank has passed the line."""
        file = self._folder / f"passed-{rank}"
        return int(file.read_text("utf-8") or 0) if file.exists() else 0

    def let_others_come(self) -> None:
        (self._folder / "late").touch()

    async def runs_on(self, *ranks: int, within: float = LIMIT) -> None:
        """Wait until these have passed the line a few times more."""
        wanted = {rank: self.passed(rank) + 3 for rank in ranks}

        def on() -> bool:
            return all(self.passed(rank) >= number for rank, number in wanted.items())

        await until(on, within=within, what=f"ranks {ranks} run on")

    async def ends(self, *, but: int = -1) -> None:
        (self._folder / "done").touch()
        self.let_others_come()
        ended = [await rank.ended() for rank in self.ranks if rank.rank != but]
        assert ended == [0] * len(ended), [rank.output for rank in self.ranks]


Start = Callable[..., Awaitable[Program]]


@pytest.fixture
def start(start_ranks: StartRanks, tmp_path: Path) -> Start:
    """`await start("agent", number)`."""
    folder = tmp_path / "program"
    folder.mkdir()

    async def started(style: Style, number: int = 2) -> Program:
        return Program(
            folder, await start_ranks(number, PROGRAM, arguments=[str(folder)], style=style)
        )

    return started


async def waits(running: Session, *ranks: int) -> None:
    """Wait until these wait in the condition: they have not stopped."""

    def there() -> bool:
        found = [running.engine.core.ranks["job", rank].at_barrier for rank in ranks]
        return all(at is not None and not at.stops for at in found)

    await until(there, within=LIMIT, what=f"ranks {ranks} wait")


async def waiting(running: Session, ranks: int, condition: str = DIFFER) -> Driver:
    breakpoints = {PROGRAM: [{"line": PASS, "condition": condition}]}
    driver = await (await Driver.attach(running, breakpoints=breakpoints)).live(ranks)
    await waits(running, 0)
    return driver


async def set_at_the_line(driver: Driver, *conditions: str) -> None:
    breakpoints = [{"line": PASS, "condition": condition} for condition in conditions]
    asked = {"source": {"path": PROGRAM}, "breakpoints": breakpoints}
    await driver.client.request("setBreakpoints", asked, timeout=LIMIT)


async def beats(driver: Driver) -> int:
    """How far another thread of rank 0 has come."""
    asked = {"ranks": "0", "expression": "beats"}
    body = await driver.client.request("compare", asked, timeout=LIMIT)
    return int(body["values"][0]["value"])


@styles
async def test_its_other_threads_go_on(start: Start, style: Style) -> None:
    """And once the others come, all of them do, without a stop."""
    program = await start(style)
    async with session(program.ports) as running:
        driver = await waiting(running, 2)
        first = await beats(driver)
        while await beats(driver) < first + 5:
            pass
        assert program.passed(0) == 0
        program.let_others_come()
        await program.runs_on(0, 1)
        assert driver.events("stopped") == []
        await driver.leave()
        await program.ends()


async def test_its_other_threads_go_on_at_a_barrier(start: Start) -> None:
    """As a DataLoader's, a watchdog's or a heartbeat's do; then both ranks stop, all threads."""
    program = await start("agent")
    async with session(program.ports) as running:
        driver = await waiting(running, 2, "barrier: passed >= 0")
        first = await beats(driver)
        while await beats(driver) < first + 5:
            pass
        assert driver.events("stopped") == []
        program.let_others_come()
        stopped = await driver.client.wait_event("stopped", timeout=LIMIT)
        assert stopped["description"] == "At barrier 2/2"
        now = await beats(driver)
        assert await beats(driver) == now
        await driver.leave()
        await program.ends()


async def test_a_rank_that_dies_is_not_waited_for(start: Start) -> None:
    program = await start("agent", 3)
    async with session(program.ports) as running:
        driver = await waiting(running, 3)
        program.ranks[1].kill()
        program.let_others_come()
        await program.runs_on(0, 2)
        await driver.leave()
        await program.ends(but=1)


async def test_a_pause_and_a_continue(start: Start) -> None:
    """It stops at the line, passes it when all are told to continue, and meets the others later."""
    program = await start("agent")
    async with session(program.ports) as running:
        driver = await waiting(running, 2)
        await driver.control("pause", 0, singleThread=True)
        await driver.until(lambda entries: entries[0]["state"] == "stopped")
        assert (await driver.frames(0))[0]["line"] == PASS
        assert await driver.value(0, "passed") == "0"
        await driver.control("continue", 0)
        await driver.until(lambda entries: entries[0]["state"] == "running")
        await until(lambda: program.passed(0) == 1, within=LIMIT, what="rank 0 passes the line")
        program.let_others_come()
        await program.runs_on(0, 1)
        await driver.leave()
        await program.ends()


@styles
async def test_removed_released_and_detached(start: Start, style: Style) -> None:
    """The breakpoint is removed; then its rank is released; then the session detaches."""
    program = await start(style)
    async with session(program.ports) as running:
        driver = await waiting(running, 2)
        await set_at_the_line(driver)
        await program.runs_on(0)
        await set_at_the_line(driver, DIFFER)
        await waits(running, 0)
        await driver.client.request("release", {"ranks": "0"}, timeout=LIMIT)
        await program.runs_on(0)
        await driver.leave()
        driver = await (await Driver.attach(running)).live(2)
        await set_at_the_line(driver, DIFFER)
        await waits(running, 0)
        await driver.leave()
        await program.runs_on(0)
    await program.ends()


@styles
async def test_a_session_that_is_killed(start: Start, user: User, style: Style) -> None:
    program = await start(style)
    command = await user.start("attach", f"127.0.0.1:{program.ports[0]}+2")
    client: DapClient = await command.client(all_answered=False)
    await client.handshake(
        {"justMyCode": False},
        breakpoints={PROGRAM: [{"line": PASS, "condition": DIFFER}]},
        timeout=LIMIT,
    )

    async def waits_for_the_other() -> bool:
        entries = (await client.request("list", timeout=LIMIT))["ranks"]
        there = [entry["state"] for entry in entries] == ["running", "running"]
        return there and entries[0]["reason"] == "differ 1/2"

    while not await waits_for_the_other():
        pass
    command.process.kill()
    await program.runs_on(0)
    await program.ends()


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateNetwork]:
    monkeypatch.setattr(sockets, "CHECK_INTERVAL_S", 0.2)
    with private_network() as ours:
        yield ours


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.skipif(not possible(), reason="only root may have a network of its own")
async def test_a_link_that_is_cut(
    network: PrivateNetwork, start_ranks: StartRanks, tmp_path: Path
) -> None:
    """No word arrives any more, in either direction: the rank notices by itself.

    Not so soon where it has sent something that was not acknowledged before the cut: the system
    then sends that again and again, for a quarter of an hour, before it tells debugpy's adapter.
    """
    arguments, far = [str(tmp_path)], {"DEBUGPY_HOST": FAR}
    async with session() as running:
        ranks = await start_ranks(1, PROGRAM, arguments=arguments, env=far)
        ranks += await start_ranks(1, PROGRAM, arguments=arguments, env={"RANK": "1"})
        program = Program(tmp_path, ranks)
        for number, host in enumerate((FAR, "127.0.0.1")):
            endpoint = Endpoint(host, ranks[number].port, ready=True)
            running.driver.feed(inputs.RankKnown(("job", number), endpoint))
        driver = await waiting(running, 2)
        await until(network.is_quiet, within=LIMIT, what="all is acknowledged")
        network.lose(FAR)
        await program.runs_on(0, within=NOTICED_WITHIN)
        network.find(FAR)
        await driver.leave()
    await program.ends()
