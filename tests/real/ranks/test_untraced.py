"""A rank is traced while a debugger is attached, and at no other time; it stops all the same."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient, Json
from dap_mux.engine import Settings
from tests.real.driving import StartRanks, driving, script
from tests.real.ranks.agents import Start
from tests.real.ranks.programs import Python
from tests.support.processes.commands import line_of
from tests.support.processes.ranks import HOST
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real
PROGRAM: Final = script("untraced")
MAIN, WORK = line_of(PROGRAM, "main"), line_of(PROGRAM, "work")
LIMIT: Final = 30.0  # s; not a wait


@dataclass
class Files:
    """The files that the program looks for and writes."""

    folder: Path

    @property
    def arguments(self) -> list[str]:
        return [str(self.folder / name) for name in ("done", "told", "late")]

    def create(self, name: str) -> None:
        (self.folder / name).touch()

    async def say(self, **traced: bool) -> None:
        """Wait until the program says that these threads, and no others, are (not) traced."""
        await until(lambda: self.told == traced, within=LIMIT, what=f"{traced}")

    @property
    def told(self) -> dict[str, bool]:
        try:
            traced: dict[str, bool] = json.loads((self.folder / "told").read_text("utf-8"))
        except FileNotFoundError:
            return {}
        return traced


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def visit(port: int, *lines: Json) -> None:
    """A stock debugger comes, is stopped at each of these lines by running threads, and leaves."""
    client = await DapClient.connect(HOST, port)
    await client.handshake({"justMyCode": False}, breakpoints={PROGRAM: lines[:1]}, timeout=LIMIT)
    for line in lines:
        source = {"source": {"path": PROGRAM}, "breakpoints": [line]}
        await client.request("setBreakpoints", source, timeout=LIMIT)
        stop = await client.wait_event("stopped", timeout=LIMIT)
        stack = await client.request("stackTrace", {"threadId": stop["threadId"]}, timeout=LIMIT)
        assert stack["stackFrames"][0]["line"] == line["line"]
        none = {"source": {"path": PROGRAM}, "breakpoints": []}
        await client.request("setBreakpoints", none, timeout=LIMIT)
        await client.request("continue", {"threadId": stop["threadId"]}, timeout=LIMIT)
    await client.disconnect(timeout=LIMIT)
    await asyncio.sleep(Settings().reconnect_gap)  # no process can connect sooner


async def test_a_rank_of_ours_is_traced_for_stock_debuggers_only(
    start: Start, files: Files
) -> None:
    """Threads that ran before it came, in a loop without calls, and one started in between."""
    rank = await start("--no-wait", PROGRAM, *files.arguments)
    port = rank.record["port"]
    await files.say(early=False, main=False)
    early = {"line": WORK, "condition": "name == 'early'"}
    await visit(port, {"line": MAIN}, early)
    await files.say(early=False, main=False)
    files.create("late")
    await files.say(early=False, late=False, main=False)
    await visit(port, {"line": WORK, "condition": "name == 'late'"}, {"line": MAIN}, early)
    await files.say(early=False, late=False, main=False)
    files.create("done")
    assert await rank.ends() == 0


async def test_a_debugger_that_leaves_while_a_rank_stands_still(start: Start, files: Files) -> None:
    """The thread that stood, too, runs on untraced; the next debugger stops it again."""
    rank = await start("--no-wait", PROGRAM, *files.arguments)
    for line in (WORK, MAIN):
        client = await DapClient.connect(HOST, rank.record["port"])
        await client.handshake({"justMyCode": False}, breakpoints={PROGRAM: [line]}, timeout=LIMIT)
        await client.wait_event("stopped", timeout=LIMIT)
        await client.disconnect(timeout=LIMIT)
        await files.say(early=False, main=False)
        await asyncio.sleep(Settings().reconnect_gap)
    files.create("done")
    assert await rank.ends() == 0


async def test_a_session_leaves_a_rank_untraced(start_ranks: StartRanks, files: Files) -> None:
    """One that listens by itself is traced from the start, but not after a session."""
    (rank,) = await start_ranks(1, PROGRAM, wait=False, arguments=files.arguments)
    async with driving([rank.port], {PROGRAM: [MAIN]}) as driver:
        await driver.states("stopped")
        await driver.leave()
    await files.say(early=False, main=False)
    async with driving([rank.port], {PROGRAM: [WORK]}) as driver:
        await driver.states("stopped")
        await driver.leave()
    await files.say(early=False, main=False)
    await visit(rank.port, {"line": MAIN}, {"line": WORK})
    await files.say(early=False, main=False)
    files.create("done")
    assert await rank.ended() == 0


LISTENS = """\
import io, os, pdb, sys, threading, time, traceback
import dap_mux

dap_mux.listen(port=0)

def untracing():
    stacks = map(traceback.walk_stack, sys._current_frames().values())
    names = [frame.f_code.co_name for stack in stacks for frame, _ in stack]
    return "_untrace_stragglers" in names

"""
PDB = """\
class Slow(io.StringIO):
    def write(self, text):
        while untracing():
            time.sleep(0.01)

sys.stderr = Slow()  # debugpy warns there that pdb sets its trace function
pdb.Pdb(stdin=io.StringIO("n\\nn\\nc\\n"), stdout=sys.stdout, nosigint=True).set_trace()
first = 1
second = 2
third = 3
"""
HOOK = """\
def tell():
    while untracing():
        time.sleep(0.01)
    os.write(written, b"over")

def hook():
    os.read(told, 4)
    debugger = pdb.Pdb(stdin=io.StringIO("n\\nn\\nc\\n"), stdout=sys.stdout, nosigint=True)
    debugger.set_trace(sys._getframe().f_back)

told, written = os.pipe()
threading.Thread(target=tell).start()
hook()
first = 1
second = 2
third = 3
"""


@pytest.mark.parametrize("program", [PDB, HOOK], ids=["about to begin", "in a function"])
async def test_a_pdb_of_the_programs_own_stays(python: Python, program: str) -> None:
    """It has begun while threads were still looked after that debugpy had traced before."""
    agent = await python(LISTENS + program)
    assert await agent.ends() == 0, agent.text()
    assert [line for line in agent.text().splitlines() if line.startswith("->")] == [
        "-> first = 1",
        "-> second = 2",
        "-> third = 3",
    ]
