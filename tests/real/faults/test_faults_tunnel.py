"""Rows of the fault table: tunnels to ranks that are down, slow, or end in mid-message.

Three ranks are reached directly, rank 3 through the fault proxy; the others never notice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest

from dap_mux.shell import links
from tests.real.driving import COUNT, COUNTING, Driver, StartRanks, ends_well
from tests.real.faults.test_ranks_come_and_go import steps_on
from tests.support import faults
from tests.support.faults import Fault, FaultProxy, proxied
from tests.support.processes import proc_net
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import Session, session

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(120)]
LIMIT: Final = 30.0  # s; 15 are promised on a machine that is not busy
OTHERS: Final = [0, 1, 2]
GARBAGE: Final = b"HTTP/1.1 200 OK\r\n\r\n"


class Scene:
    """Four ranks, the tunnel to rank 3, and a session over them."""

    def __init__(self, ranks: list[Rank], tunnel: FaultProxy, running: Session, done: Path) -> None:
        self.ranks = ranks
        self.tunnel = tunnel
        self.running = running
        self._done = done

    async def attach(self, *lines: int) -> Driver:
        """Attach with breakpoints in these lines; all four are there."""
        driver = await Driver.attach(self.running, breakpoints={COUNTING: lines} if lines else {})
        return await driver.live(4, within=LIMIT)

    async def lost(self, driver: Driver) -> str:
        """Wait until rank 3 is lost; return why."""
        entries = await driver.until(lambda e: e[3]["state"] == "lost", within=LIMIT, what="lost")
        return str(entries[3]["reason"])

    async def evaluated(self, *, compared: bool = True) -> None:
        """Wait until rank 3 evaluates nothing any more; `compared`: not what its file is either.

        Debugpy's adapter does not survive an answer that crosses a hang-up (docs/faults.md).
        """
        owed = self.running.engine.core.ranks["job", 3].connection.pending

        def done() -> bool:
            evaluates = any(one.command == "evaluate" for one in owed.values())
            looks = self.asked("def digest(path")
            return looks == len(self.ranks) * compared and not evaluates

        await until(done, within=LIMIT, what="rank 3 evaluates nothing")

    def asked(self, text: str) -> int:
        """Count what was sent to ranks with `text` in it."""
        return sum(text.encode() in body for body in self.running.engine.told)

    async def ends_well(self, driver: Driver) -> None:
        """The client leaves, and every rank runs to its own end."""
        await driver.leave()
        await self.end_well()

    async def end_well(self) -> None:
        """Every rank runs to its own end."""
        await ends_well(self.ranks, self._done)


class Held:
    """An expression that is evaluated for as long as a test wants."""

    def __init__(self, folder: Path) -> None:
        self._fifo = folder / "held"
        self._end: int | None = None
        os.mkfifo(self._fifo)
        self.expression = f"open({str(self._fifo)!r}).read()"

    def has_begun(self) -> bool:
        """True once somebody reads: without that this end cannot be opened."""
        with contextlib.suppress(OSError):
            self._end = os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK)
        return self._end is not None

    def let_go(self) -> None:
        """Let it come to its end."""
        assert self._end is not None
        os.close(self._end)


@pytest.fixture
async def scene(start_ranks: StartRanks, tmp_path: Path) -> AsyncIterator[Scene]:
    done = tmp_path / "done"
    ranks = await start_ranks(4, COUNTING, arguments=[str(done)])
    near = [rank.port for rank in ranks[:3]]
    async with proxied(ranks[3].port) as tunnel, session([*near, tunnel.port]) as running:
        yield Scene(ranks, tunnel, running, done)


async def test_dropped_and_restored_while_running(scene: Scene) -> None:
    """Back with the breakpoints that were set meanwhile; no second `initialized`."""
    driver = await scene.attach()
    await scene.evaluated(compared=False)  # what it is asked at first may be answered after attach
    await scene.tunnel.fail(faults.Refuse())
    await scene.lost(driver)
    await driver.until(lambda e: "the tunnel to it is down" in e[3]["reason"], within=LIMIT)
    wanted = {"source": {"path": COUNTING}, "breakpoints": [{"line": COUNT}]}
    (answer,) = (await driver.client.request("setBreakpoints", wanted))["breakpoints"]
    assert answer["verified"]
    assert "rank 3: not attached yet" in answer["message"]
    await driver.until(lambda e: [one["line"] for one in e[:3]] == [COUNT] * 3, within=LIMIT)
    await steps_on(driver, 0, OTHERS)
    await scene.tunnel.heal()
    await driver.until(lambda e: e[3]["line"] == COUNT, within=LIMIT, what="back, at its line")
    assert len(driver.events("initialized")) == 1
    await scene.ends_well(driver)


async def test_dropped_and_restored_while_stopped(scene: Scene) -> None:
    """Debugpy lets the rank run on when the tunnel breaks: no stale stop, stale handles fail."""
    driver = await scene.attach(COUNT)
    await driver.stopped(COUNT, within=LIMIT)
    (frame, *_) = await driver.frames(3)
    await scene.evaluated()
    await driver.client.request("setBreakpoints", {"source": {"path": COUNTING}})
    await scene.tunnel.fail(faults.Refuse())
    await scene.lost(driver)
    await steps_on(driver, 0, OTHERS)
    await scene.tunnel.heal()
    await driver.until(lambda e: e[3]["state"] == "running", within=LIMIT, what="back, running")
    stale = await driver.client.send("scopes", {"frameId": frame["id"]})
    assert not stale["success"]
    await driver.control("pause", 3)
    await driver.until(lambda e: e[3]["line"], within=LIMIT, what="it can be stopped again")
    assert int(await driver.value(3, "count")) > 0
    await scene.ends_well(driver)


async def test_half_a_tunnel_while_stopped(scene: Scene) -> None:
    """The far half keeps its connection, so that debugpy keeps the rank stopped and refuses us.

    `list` says lost, why, and what helps; it is tried again until the far half is gone.
    """
    driver = await scene.attach(COUNT)
    await driver.stopped(COUNT, within=LIMIT)
    await scene.tunnel.fail(faults.Orphan())
    await scene.lost(driver)
    entries = await driver.until(
        lambda e: "already being debugged" in e[3]["reason"], within=LIMIT, what="refused"
    )
    assert "retrying until it is free" in entries[3]["reason"]
    assert entries[3]["state"] == "lost"
    await steps_on(driver, 0, OTHERS)
    await scene.tunnel.heal()
    await driver.until(lambda e: e[3]["line"] == COUNT, within=LIMIT, what="back, at its line")
    assert int(await driver.value(3, "count")) >= 1
    await scene.ends_well(driver)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda: faults.Cut(40), id="cut-in-a-message"),
        pytest.param(lambda: faults.Cut(7), id="cut-in-a-header"),
        pytest.param(lambda: faults.Inject(GARBAGE), id="garbage"),
        pytest.param(lambda: faults.Corrupt(3), id="a-wrong-byte-in-a-header"),
        pytest.param(lambda: faults.Corrupt(40), id="a-wrong-byte-in-a-message"),
    ],
)
async def test_what_comes_from_a_rank_is_broken(scene: Scene, fault: Callable[[], Fault]) -> None:
    """That link ends and is opened again; the others step."""
    driver = await scene.attach(COUNT)
    await driver.stopped(COUNT, within=LIMIT)
    await scene.evaluated()
    scene.tunnel.down.switch(fault())
    await steps_on(driver, 0, OTHERS)
    await steps_on(driver, 0, OTHERS)
    down = scene.tunnel.down
    await until(lambda: down.fault is faults.PASS, within=LIMIT, what="it has happened")
    # not always at its line: a step that was under way is made at its next stop (measured)
    await driver.until(
        lambda e: scene.tunnel.met > 1 and e[3]["line"], within=LIMIT, what="back, stopped"
    )
    assert int(await driver.value(3, "count")) >= 1
    await scene.ends_well(driver)


async def test_cut_while_it_evaluates(scene: Scene, tmp_path: Path) -> None:
    """Its answer would end debugpy's adapter; nobody gets it, and the rank is back."""
    driver = await scene.attach(COUNT)
    await driver.stopped(COUNT, within=LIMIT)
    (frame, *_) = await driver.frames(3)
    evaluate = Held(tmp_path)
    slow = {"expression": evaluate.expression, "frameId": frame["id"], "context": "repl"}
    asked = driver.client.send("evaluate", slow)
    await until(evaluate.has_begun, within=LIMIT, what="it evaluates")
    port, adapter = scene.ranks[3].port, scene.ranks[3].adapter
    broken = proc_net.accepted(adapter, port)
    assert broken
    scene.tunnel.reset()
    assert not (await asked)["success"]
    await until(lambda: proc_net.has_closed(adapter, broken), within=LIMIT, what="it is told")
    await until(lambda: scene.tunnel.met > 1, within=LIMIT, what="connected again")
    evaluate.let_go()
    await driver.until(
        lambda e: scene.tunnel.met > 1 and e[3]["line"] == COUNT, within=LIMIT, what="back"
    )
    assert proc_net.listener(port) == adapter
    assert int(await driver.value(3, "count")) >= 1
    await steps_on(driver, 0, [0, 1, 2, 3])
    await scene.ends_well(driver)


async def test_garbage_while_it_evaluates(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We hang up only when the answer may have come: its adapter lives, and it is back."""
    monkeypatch.setattr(links, "CLOSE_DELAY_S", 10.0)  # a busy machine needs longer for its answer
    driver = await scene.attach(COUNT)
    await driver.stopped(COUNT, within=LIMIT)
    await scene.evaluated()
    (frame, *_) = await driver.frames(3)
    evaluate, down = Held(tmp_path), scene.tunnel.down
    slow = {"expression": evaluate.expression, "frameId": frame["id"]}
    asked = driver.client.send("evaluate", slow)
    await until(evaluate.has_begun, within=LIMIT, what="it evaluates")
    down.switch(faults.Inject(GARBAGE))
    also = driver.client.send("scopes", {"frameId": frame["id"]})
    await until(lambda: down.fault is faults.PASS, within=LIMIT, what="garbage has come")
    evaluate.let_go()
    assert not (await asked)["success"]
    assert not (await also)["success"]
    await driver.until(
        lambda e: scene.tunnel.met > 1 and e[3]["line"] == COUNT, within=LIMIT, what="back"
    )
    await scene.ends_well(driver)


async def test_a_bad_line(scene: Scene) -> None:
    """Slow is not broken: it attaches, stops and steps with the others."""
    for slow in (faults.Latency(0.1), faults.Rate(100_000), faults.OneByte()):
        await scene.tunnel.fail(slow)
        driver = await scene.attach(COUNT)
        await driver.stopped(COUNT, within=LIMIT)
        await steps_on(driver, 0, [0, 1, 2, 3])
        assert int(await driver.value(3, "count")) >= 1
        await driver.leave()
    await scene.end_well()


async def test_a_stalled_link(scene: Scene) -> None:
    """Nothing comes and nothing breaks: not lost, and where it is comes when it moves again."""
    driver = await scene.attach(COUNT)
    await driver.stopped(COUNT, within=LIMIT)
    await scene.tunnel.fail(faults.Stall())
    await steps_on(driver, 0, OTHERS)
    await steps_on(driver, 0, OTHERS)
    assert (await driver.entries())[3]["state"] == "running"
    await scene.tunnel.heal()
    await driver.until(lambda e: e[3]["line"], within=LIMIT, what="arrived at last")
    assert scene.tunnel.met == 1
    await scene.ends_well(driver)
