"""Row of the fault table: a client that does not read, under 200 MB of output."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.shell import listeners
from dap_mux.system import procfs
from tests.real.driving import Driver, StartRanks, script
from tests.real.faults.test_ranks_come_and_go import steps_on
from tests.support import faults
from tests.support.clients.conversation import Conversation
from tests.support.faults import proxied
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.waiting import until
from tests.support.session import session

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(240),
]
Log = pytest.LogCaptureFixture
PROGRAM: Final = script("until_told")
FLOOD: Final = script("prints_a_lot")
COUNT: Final = {FLOOD: [line_of(FLOOD, "count")]}
MEGABYTES: Final = 50  # of each of four ranks
LINES: Final = 4 * (MEGABYTES * 10_000 + 1)
GROWTH: Final = 64 * 1024 * 1024  # bytes, the promise
FLOODED: Final = 120.0  # s; not a wait
STALLED: Final = 60.0  # s at least, the promise
PACE: Final = 0.5  # s between two steps: without it they keep a processor from the tests beside


class Heard:
    """Counts the lines of output that a client was given, and those that it was told of losing."""

    def __init__(self, client: DapClient) -> None:
        self.given = 0
        self.lost = 0
        client.on_event.append(self._event)

    def _event(self, event: dict[str, Any]) -> None:
        if event["event"] != "output":
            return
        text = event["body"]["output"]
        event["body"]["output"] = ""  # seen: 200 MB need not be kept
        dropped = re.fullmatch(
            r"dap-mux: ([\d,]+) lines? of output \(.*\) w\w+ dropped, .*\n", text
        )
        by_rank = re.search(
            r"\(([\d,]+) lines of output left out: the connection is too slow", text
        )
        if dropped or by_rank:
            count = (dropped or by_rank)[1]  # type: ignore[index]
            self.lost += int(count.replace(",", ""))
        elif (text.startswith("[") and "rank" in text) or "all is printed" in text:
            self.given += text.count("\n")

    async def all_of_it(self) -> None:
        """Wait until it knows of every line."""
        await until(
            lambda: self.given + self.lost == LINES,
            within=FLOODED,
            what=f"every line is accounted for: {self.given} + {self.lost} of {LINES}",
        )


def memory(pid: int, what: str) -> int:
    """Return a process's memory in bytes: `VmRSS` now, `VmHWM` at its highest."""
    return int(procfs.status(pid)[what].split()[0]) * 1024


async def test_200_mb_of_output_and_a_client_that_does_not_read(
    user: User, start_ranks: StartRanks, tmp_path: Path
) -> None:
    done, go = tmp_path / "done", tmp_path / "go"
    ranks = await start_ranks(4, FLOOD, arguments=[str(done), str(MEGABYTES), str(go)])
    attach = await user.start("attach", f"127.0.0.1:{ranks[0].port}+4")
    session = await attach.session()
    conversation = Conversation("slow")
    async with proxied(session["port"]) as line:
        slow = await DapClient.connect("127.0.0.1", line.port, tap=conversation.tap)
        other = await DapClient.connect("127.0.0.1", session["port"])
        await slow.handshake({"redirectOutput": True}, breakpoints=COUNT, timeout=LIMIT)
        await other.handshake({}, breakpoints=COUNT, timeout=LIMIT)
        heard, others = Heard(slow), Heard(other)
        await listed(other, "state", *["running"] * 4)

        before = memory(attach.process.pid, "VmRSS")
        line.down.switch(faults.Stall())
        stalled = time.monotonic()
        touch(go)
        asked = slow.send("threads")
        await listed(other, "line", *COUNT[FLOOD] * 4, within=FLOODED)  # answered all the while
        await other.wait_event("stopped", timeout=LIMIT)
        await others.all_of_it()
        while time.monotonic() - stalled < STALLED:
            await stepped(other)
            await asyncio.sleep(PACE)
        assert memory(attach.process.pid, "VmHWM") - before < GROWTH
        assert not asked.done()
        assert not heard.lost

        await line.heal()
        await slow.wait_event("stopped", timeout=LIMIT)
        assert (await asked)["success"]
        await heard.all_of_it()
        assert heard.lost > LINES // 2
        await other.disconnect(timeout=LIMIT)
        await slow.disconnect(timeout=LIMIT)
    conversation.finish()
    touch(done)
    assert [await rank.ended(within=LIMIT) for rank in ranks] == [0] * 4


async def stepped(client: DapClient) -> None:
    """Step all ranks, and wait until this client is told where they are."""
    stops = shown(client)
    await client.request("next", {"threadId": stops[-1]}, timeout=LIMIT)
    await until(lambda: len(shown(client)) > len(stops), within=LIMIT, what="they step")


def shown(client: DapClient) -> list[int]:
    """The rows that stops have shown so far; one who is late to a step is shown to no one."""
    stops = bodies(client, "stopped")
    return [stop["threadId"] for stop in stops if not stop.get("preserveFocusHint")]


def touch(path: Path) -> None:
    path.touch()


async def test_a_client_that_never_reads_its_answers(
    start_ranks: StartRanks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    """What must not be dropped is bounded as well: who leaves too much unread is closed."""
    assert listeners.MAX_UNREAD < GROWTH
    monkeypatch.setattr(listeners, "MAX_UNREAD", 4_000_000)
    done = tmp_path / "done"
    ranks = await start_ranks(4, PROGRAM, arguments=[str(done)])
    async with (
        session([rank.port for rank in ranks]) as running,
        proxied(running.port) as line,
    ):
        driver = await Driver.attach(running, breakpoints={PROGRAM: [line_of(PROGRAM, "count")]})
        await driver.states(*["stopped"] * 4, within=LIMIT)
        greedy = await DapClient.connect("127.0.0.1", line.port)
        await greedy.handshake({}, timeout=LIMIT)
        line.down.switch(faults.Stall())
        for _ in range(4):
            greedy.send("evaluate", {"expression": "'x' * 4_000_000", "context": "watch"})
        clients = running.engine.core.clients
        await until(lambda: len(clients) == 1, within=LIMIT, what="it is closed")
        assert "MiB are unread" in caplog.text
        await steps_on(driver, 0, [0, 1, 2, 3])
        await line.heal()
        await greedy.close()
        await driver.leave()
        touch(done)
        assert [await rank.ended(within=LIMIT) for rank in ranks] == [0] * 4
