"""Monarch's page on its debugger, word for word: typed at that, and at our console.

The same program runs twice: alone, with `monarch debug`'s own door, and by `dap-mux run`. After
each of the page's lines both tables of 16 actors are compared.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.bench.monarch import THEIRS
from tests.bench.prompts import Prompt
from tests.launchers.launching import STARTS, launch
from tests.launchers.tools import environment
from tests.support.clients.consoles import PipedConsole, cells
from tests.support.processes.commands import Command, User
from tests.support.processes.proc_net import free_ports

pytestmark = pytest.mark.timeout(300)
COUNT: Final = 16
RESULT: Final = "16 have returned\n"
SCRIPTS: Final = Path(__file__).with_name("scripts")
PROGRAM: Final = "monarch_page.py"
CALL, DEF = 16, 20
BODY: Final = DEF + 1
"""Where debugpy stands after `s`, which leaves pdb on the `def`."""
HEAD: Final = ["Actor Name", "Rank", "Coords", "Hostname", "Function", "Line No."]
Table = dict[tuple[str, int], tuple[str, str, int]]


def table(text: str) -> Table:
    """Coordinates, function and line of each actor."""
    head, *rows = cells(text) or [HEAD]
    assert head[:6] == HEAD
    return {(row[0], int(row[1])): (row[2], row[4], int(row[5])) for row in rows}


def ranks_at(shown: Table) -> dict[int, tuple[str, int]]:
    """Function and line by rank; names and coordinates are held to the page's."""
    for (name, rank), (coords, _, _) in shown.items():
        assert (name, coords) == ("debugee", f"{{'hosts': {rank // 4}, 'gpus': {rank % 4}}}")
    return {rank: (function, line) for (_, rank), (_, function, line) in shown.items()}


class Both:
    """The two prompts."""

    def __init__(
        self, theirs: Prompt, ours: PipedConsole, alone: asyncio.subprocess.Process
    ) -> None:
        self.theirs = theirs
        self.ours = ours
        self._alone = alone

    async def type(self, line: str) -> tuple[str, str]:
        """Type a line of the page at both; return what each has shown."""
        shown = await self.at_theirs(line)
        return shown, await self.ours.does(line)

    async def at_theirs(self, line: str) -> str:
        """Type a line at Monarch's alone."""
        return await asyncio.to_thread(self.theirs.does, line, PROMPT)

    async def leave(self) -> bytes:
        """`c` lets everybody run on; return what Monarch's program has printed at its end."""
        self.theirs.type("c")
        self.ours.type("c")
        await self.ours.sees("all ranks are released")
        output, _ = await asyncio.wait_for(self._alone.communicate(), STARTS)
        return output

    async def list(
        self, theirs: dict[int, tuple[str, int]], ours: dict[int, tuple[str, int]] | None = None
    ) -> None:
        """`list` until it shows these: who is told to step stands where it stood for a while."""
        end = asyncio.get_running_loop().time() + STARTS
        expected = (theirs, theirs if ours is None else ours)
        while (shown := tuple(map(ranks_at, map(table, await self.type("list"))))) != expected:
            assert asyncio.get_running_loop().time() < end, (shown, expected)


PROMPT: Final = rb"(?:monarch_dbg> |\(Pdb\) )$"


def program_of(user: User) -> list[str]:
    """The page's program, in the working folder, where Monarch finds modules."""
    for name in (PROGRAM, "my_actors.py"):
        user.script((SCRIPTS / name).read_text("utf-8"), name)
    return [PROGRAM]


@pytest.fixture
async def run(user: User) -> Command:
    """The page's program under `dap-mux run`, all its 16 actors at their breakpoint."""
    words = ["run", "--", "python", *program_of(user)]
    return await launch(user, environment("monarch"), words)


def door(port: int) -> dict[str, str]:
    """What has Monarch serve its debugger there."""
    return {"MONARCH_DEBUG_SERVER_HOST": "127.0.0.1", "MONARCH_DEBUG_SERVER_PORT": str(port)}


@pytest.fixture
async def both(user: User, run: Command) -> AsyncIterator[Both]:
    """The prompts of both debuggers."""
    port = free_ports(1)
    alone = await asyncio.create_subprocess_exec(
        str(environment("monarch") / "python"), PROGRAM,
        cwd=user.folder, stdout=asyncio.subprocess.PIPE,
        env={**user.environ, **door(port)},
    )  # fmt: skip
    user.others.append(alone)
    await run.session()
    ours = PipedConsole(await user.start("console", "--words", "monarch", piped=True))
    with await asyncio.to_thread(Prompt, port, THEIRS) as theirs:
        yield Both(theirs, ours, alone)


def at(function: str, line: int, *ranks: int) -> dict[int, tuple[str, int]]:
    return dict.fromkeys(ranks, (f"my_actors.{function}", line))


async def test_the_page(both: Both, run: Command) -> None:
    """Listing, attaching, casting and leaving, in the page's order."""
    await both.list(at("to_debug", CALL, *range(COUNT)))
    await attach_detach_attach(both)
    for line in (
        "cast debugee ranks(0,1) n",
        "cast debugee ranks(2:7:2) s",
        "cast debugee ranks(hosts=2:, gpus=1:) c",
    ):
        for shown in await both.type(line):
            assert "rror" not in shown
    stand = at("to_debug", CALL + 1, 0, 1) | at("to_debug", CALL, 3, 5, 7, 8, 12)
    await both.list(
        stand | at("inner_function", DEF, 2, 4, 6), stand | at("inner_function", BODY, 2, 4, 6)
    )
    await the_grammar(both)
    assert await both.leave() == RESULT.encode()
    done = await run.ends(within=STARTS)
    assert (done.code, done.out) == (0, RESULT)


async def attach_detach_attach(both: Both) -> None:
    """The page's first part, on `debugee 13`."""
    for shown, name in zip(
        await both.type("attach debugee 13"), ("debugee 13", "rank procs:13"), strict=True
    ):
        assert f"Attached to debug session for {name} (" in shown
    for line, theirs_at, ours_at in (
        ("s", DEF, BODY),
        ("n", BODY, BODY + 1),
        ("n", BODY + 1, None),
    ):
        assert f"my_actors.py({theirs_at})inner_function()" in await both.at_theirs(line)
        if ours_at:
            assert f"my_actors.py({ours_at})inner_function()" in await both.ours.does(line)
    value = [int(shown.split()[0]) for shown in await both.type("x")]
    assert all(0 <= each <= 1000 for each in value)
    for shown in await both.type("detach"):
        assert "Detaching from debug session for " in shown
        assert "Detached from debug session for " in shown
    others = at("to_debug", CALL, *(rank for rank in range(COUNT) if rank != 13))
    await both.list(others | at("inner_function", BODY + 1, 13))
    for shown, last in zip(await both.type("attach debugee 13"), value, strict=True):
        assert f"{last}\n" in shown
    for shown in await both.type("continue"):
        assert "Detached from debug session for " in shown
    await both.list(others)


async def the_grammar(both: Both) -> None:
    """What else selects ranks, the short forms, and the words that leave."""
    for ranks in ("3", "0,1", "0:2", "::4", "hosts=1, gpus=(0,2)", "hosts=0:2"):
        for shown in await both.type(f"cast debugee ranks({ranks}) p rank"):
            assert "rror" not in shown
    for shown in await both.type("h"):
        assert "attach" in shown
        assert "cast" in shown
    for shown in await both.type("a debugee 0"):
        assert "Attached" in shown
    await both.type("detach")
    for shown in await both.type("l"):
        assert "to_debug" in shown


async def test_its_own_breakpoint_without_a_debugger_of_ours(user: User) -> None:
    """Nobody has attached to the session: `breakpoint()` waits for `monarch debug`, as ever."""
    port = free_ports(1)
    words = ["run", "--no-wait", "--", "python", *program_of(user), "2"]
    run = await launch(user, environment("monarch"), words, **door(port))
    with await asyncio.to_thread(Prompt, port, THEIRS) as theirs:

        async def all_wait() -> bool:
            shown = await asyncio.to_thread(theirs.does, "list", PROMPT)
            return len(table(shown)) == 2 * 2

        end = time.monotonic() + STARTS
        while not await all_wait():
            assert time.monotonic() < end, "not all wait in Monarch's breakpoint"
            await asyncio.sleep(0.5)  # as fast as a person asks; faster, its prompt may hang
    run.process.terminate()
    await run.ends(within=STARTS)
    await user.nothing_is_left(within=STARTS)
