"""Rows of the fault table: sessions that say nothing any more, and ranks without an adapter.

The limit is shorter than in life; `tests/unit/shell/test_liveness.py` checks the real one.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from dap_mux.engine import Settings, inputs
from dap_mux.pure.endpoint import Endpoint
from dap_mux.shell import sockets
from tests.conftest import rounds
from tests.real.driving import Driver, joined
from tests.real.ranks.agents import Start
from tests.support.hosts.private_network import possible, private_network
from tests.support.processes import proc_net
from tests.support.processes.callers import callers, told_by
from tests.support.processes.commands import Command, User, line_of, listed
from tests.support.processes.waiting import until
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(300)]
LIMIT: Final = 60.0  # s
SILENCE: Final = 1.5  # s
STEPS: Final = """\
import sys
import time
from pathlib import Path

done, steps = Path(sys.argv[1]), Path(sys.argv[2])
number = 0
while not done.exists():
    number += 1  # step
    steps.write_text(str(number))
    print("x" * 5000, flush=True)
    time.sleep(0.02)
"""
FAR: Final = "127.0.0.9"  # the address that packets are lost of
Way = Callable[[User, Start, list[str]], Awaitable[Command]]


def taken(steps: Path) -> int:
    """How many steps the rank has taken; it may be writing right now."""
    return int(steps.read_text() or "0") if steps.exists() else 0


async def goes_on(steps: Path) -> None:
    """It takes a hundred steps: nothing of what it prints holds it up."""
    before = taken(steps)
    await until(lambda: taken(steps) > before + 100, within=LIMIT, what="the rank runs on")


async def by_port(user: User, start: Start, words: list[str]) -> Command:
    """A rank that listens at its own port, and `dap-mux attach`."""
    rank = await start("--no-wait", *words)
    port = f"127.0.0.1:{rank.record['port']}"
    return await user.start("attach", "--release-after", str(SILENCE), port)


async def by_dialling(user: User, start: Start, words: list[str]) -> Command:
    """A rank that dials the session."""
    del start
    port = str(proc_net.free_ports(1))
    silence = ["--release-after", str(SILENCE)]
    attach = await user.start("attach", "dial:1", "--dial-listen", port, *silence)
    await callers(user, [0], words[0], await told_by(attach), arguments=words[1:], world=1)
    return attach


@pytest.mark.parametrize("way", [by_port, by_dialling])
async def test_a_session_that_is_stopped_holds_no_rank(
    user: User, start: Start, tmp_path: Path, way: Way
) -> None:
    """Standing at a breakpoint, and while it prints; and the session is there again afterwards."""
    script, done, steps = user.script(STEPS), tmp_path / "done", tmp_path / "steps"
    attach = await way(user, start, [script, str(done), str(steps)])
    here = {script: [{"line": line_of(script, "step"), "hitCondition": "% 7"}]}
    client = await joined(attach, here)
    for _ in range(rounds(8)):
        await listed(client, "state", "stopped", within=LIMIT)
        attach.process.send_signal(signal.SIGSTOP)
        await goes_on(steps)
        attach.process.send_signal(signal.SIGCONT)
    await listed(client, "state", "stopped", within=LIMIT)
    await client.disconnect(timeout=LIMIT)
    await goes_on(steps)
    done.touch()


@pytest.mark.skipif(not possible(), reason="only root may have a network of its own")
@pytest.mark.parametrize("prints", [False, True], ids=["stands", "prints"])
async def test_a_line_that_is_down_holds_no_rank(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, prints: bool
) -> None:
    """Nor does what it has printed, of which nothing is acknowledged: keep-alive is silent then.

    The machine of a session that has ended unheard looks the same. With the line up again the
    session, or another, attaches at once.
    """
    script, done, steps = tmp_path / "steps.py", tmp_path / "done", tmp_path / "steps"
    script.write_text(STEPS)
    monkeypatch.setattr(sockets, "CHECK_INTERVAL_S", 0.2)
    monkeypatch.setattr(sockets, "ACK_TIMEOUT_S", 2.0)
    step = line_of(str(script), "step")
    with private_network() as network:
        rank = await start("--no-wait", "--host", FAR, str(script), str(done), str(steps))
        endpoint = Endpoint(FAR, rank.record["port"], ready=True)
        for _ in range(rounds(4)):
            async with session(settings=Settings(release_after=SILENCE)) as running:
                running.driver.feed(inputs.RankKnown(("job", 0), endpoint))
                breakpoints = {} if prints else {str(script): [step]}
                driver = await Driver.attach(running, breakpoints=breakpoints)
                await (driver.live(within=LIMIT) if prints else stands(driver, step))
                network.lose(FAR)
                await goes_on(steps)
                await driver.states("lost", within=LIMIT)
                network.find(FAR)
                await (driver.states("running", within=LIMIT) if prints else stands(driver, step))
                await driver.leave()
        done.touch()
        assert await rank.ends() == 0


async def stands(driver: Driver, line: int) -> None:
    """The rank stands at this line, and says so itself."""
    await driver.until(lambda e: e[0]["line"] == line, within=LIMIT, what="it stands")
    assert int(await driver.value(0, "number")) > 0
