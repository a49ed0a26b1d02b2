"""`cast` on real debugpy: the words of pdb, running ranks, and many ranks with one that hangs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import pytest

from dap_mux.client import Json, RequestFailed
from dap_mux.engine import Settings
from dap_mux.engine.pdb import command, step_commands
from tests.real.driving import COUNTING, Driver, driving, script
from tests.support.processes.commands import line_of
from tests.support.processes.proc_net import free_ports
from tests.support.processes.ranks import debugpy_ranks
from tests.support.session import Session

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(180)]
TOUR: Final = script("tour")
FORKED: Final = script("forked")
RANKS: Final = 4
LIMIT: Final = 60.0  # s, for any answer
# A rank that takes longer to step, or to answer, is told as running or missing: on a busy machine
# that is no news about `cast`.
PATIENT: Final = Settings(step_grace=LIMIT, request_timeout=LIMIT)


@dataclass
class Caster:
    """A console's view: who said what."""

    driver: Driver

    async def __call__(self, ranks: str, command: str, **more: object) -> Json:
        arguments = {"ranks": ranks, "command": command, "timeout": LIMIT, **more}
        body: Json = await self.driver.client.request("cast", arguments, timeout=2 * LIMIT)
        return body

    async def values(self, ranks: str, command: str) -> dict[str, str]:
        """What each set of ranks said; nobody may have failed or be missing."""
        body = await self(ranks, command)
        assert not body["errors"], body
        assert not body["missing"], body
        return {result["ranks"]: result["value"] for result in body["results"]}

    async def one(self, ranks: str, command: str) -> str:
        """What all of them said."""
        (value,) = (await self.values(ranks, command)).values()
        return value


@asynccontextmanager
async def touring(mark: str) -> AsyncIterator[tuple[Session, Driver, Caster]]:
    """Four ranks of the tour, all stopped at a marked line."""
    async with (
        debugpy_ranks(RANKS, TOUR) as ranks,
        driving(ranks, {TOUR: [line_of(TOUR, mark)]}, settings=PATIENT) as driver,
    ):
        await driver.stopped(line_of(TOUR, mark), RANKS, within=60)
        yield driver.session, driver, Caster(driver)


@pytest.fixture(autouse=True)
def timeout_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """What words of their own ask a rank for has a limit of its own: before and after a move."""
    for asking in (step_commands, command):
        monkeypatch.setattr(asking, "LINE_TIMEOUT", LIMIT)


def at(line: int, function: str, text: str) -> str:
    return f"> {TOUR}({line}){function}()\n-> {text}"


async def test_steps_of_some() -> None:
    async with touring("call") as (_, driver, cast):
        call, product, after = (line_of(TOUR, mark) for mark in ("call", "product", "after"))
        told = await cast.one("ranks(0,1)", "n")
        assert told == at(after, "main", "size += len(values)  # after")
        told = await cast.one("ranks(2:4:2)", "s")
        assert told == at(product, "area", "product = width * height  # product")
        lines = [entry["line"] for entry in await driver.entries()]
        assert lines == [after, after, product, call]
        assert await cast.one("2", "r") == at(call, "main", "size = area(rank + 1, 3)  # call")
        assert await cast.values("2-3", "c") == {"2-3": "running"}


async def test_looking_statements_and_displays() -> None:
    async with touring("product") as (_, _, cast):
        told = await cast.values("all", "a")
        assert told["2"] == "width = 3\nheight = 3"
        assert [line[:2] for line in (await cast.one("all", "w")).splitlines()] == [
            "  ",
            "  ",
            "> ",
        ]
        assert await cast.values("1", "p width") == {"1": "2"}
        assert (await cast.one("1", "u")).startswith(f"> {TOUR}({line_of(TOUR, 'call')})main()")
        assert await cast.values("1", "p rank, len(values)") == {"1": "(1, 2)"}
        assert await cast.one("1", "a") == ""
        body = await cast("all", "p values['rank']")
        assert [error["ranks"] for error in body["errors"]] == ["0,2-3"]
        assert await cast.one("1", "d") == at(
            line_of(TOUR, "product"), "area", "product = width * height  # product"
        )
        listed = (await cast.one("all", "l")).splitlines()
        assert (
            f"{line_of(TOUR, 'product'):>3} ->\t    product = width * height  # product" in listed
        )
        assert (
            (await cast.one("all", "ll"))
            .splitlines()[0]
            .endswith("def area(width: int, height: int) -> int:")
        )
        assert (await cast.one("all", "source twice")).splitlines()[-1].endswith("# twice")
        assert await cast.one("all", "whatis twice") == "Function twice"
        assert await cast.one("all", "whatis rank") == "<class 'int'>"
        assert await cast.one("all", "pp {'b': 1, 'a': 2}") == "{'a': 2, 'b': 1}"
        assert await cast.one("all", "!height = 10 * $rank") == ""
        assert await cast.one("all", "n")
        assert await cast.values("all", "product") == {"0": "0", "1": "20", "2": "60", "3": "120"}
        assert await cast.values("2-3", "display product") == {"2": "60", "3": "120"}
        await cast.one("3", "!product = 7")
        outside = await cast.one("2-3", "r")
        assert len(outside.splitlines()) == 2  # nothing of what is displayed is known out there
        assert await cast.one("2-3", "undisplay") == ""


async def test_until_and_jump() -> None:
    async with touring("turn") as (_, _, cast):
        turn = line_of(TOUR, "turn")
        await cast.one("all", "cl")
        told = await cast.one("all", "unt")
        assert told.startswith(f"> {TOUR}({turn + 1})main()"), told
        assert await cast.one("0-2", "p turn") == "7"
        call = line_of(TOUR, "call")
        assert await cast.one("0", f"unt {call}") == at(
            call, "main", "size = area(rank + 1, 3)  # call"
        )
        assert (await cast.one("1", f"j {turn - 1}")).startswith(f"> {TOUR}({turn - 1})main()")
        assert (await cast.one("2", "s")).startswith(f"> {TOUR}(")
        body = await cast("3", "j 1")
        assert body["errors"], body


async def test_breakpoints_of_some() -> None:
    async with touring("turn") as (_, driver, cast):
        bottom, caught = line_of(TOUR, "bottom"), line_of(TOUR, "caught")
        await cast.one("all", "cl")
        await cast.one("0-1", f"b tour.py:{bottom}")
        await cast.one("2", "tbreak twice")
        (number,) = [(await cast.one("3", f"b {caught}, rank == 4")).split()[1]]
        await cast.one("3", f"condition {number} rank == 3")
        assert f"tour.py:{caught} if rank == 3" in await cast.one("3", "b")
        assert await cast.one("all", "c") == "running"
        entries = await driver.until(
            lambda found: (
                [entry["function"] for entry in found] == ["deep", "deep", "twice", "main"]
            ),
            within=LIMIT,
        )
        assert [entry["state"] for entry in entries] == ["stopped"] * RANKS
        assert await cast.one("2", "b") == "no breakpoints"
        await cast.one("0", "disable " + (await cast.one("0", "b")).split()[0])
        await cast.one("1", "cl")
        assert [event["reason"] for event in driver.events("breakpoint")].count("removed") >= 2


async def test_running_ranks(tmp_path: Path) -> None:
    """A rank that runs is asked in its `__main__`; it is not stopped for that."""
    done = tmp_path / "done"
    async with (
        debugpy_ranks(2, COUNTING, arguments=[str(done)]) as ranks,
        driving(ranks, settings=PATIENT) as driver,
    ):
        await driver.states("running", "running", within=LIMIT)
        cast = Caster(driver)
        with anyio.fail_after(LIMIT):  # attached before the first line of the script has run
            while (body := await cast("all", "p done"))["errors"]:
                assert "__main__" in body["errors"][0]["message"]
        assert [(r["ranks"], r["value"], r["type"]) for r in body["results"]] == [
            ("0-1", repr(str(done)), "str")
        ]
        assert body["inMain"] == "0-1"
        (error,) = (await cast("all", "p nothing"))["errors"]
        assert error["ranks"] == "0-1"
        assert "NameError" in error["message"]
        assert "__main__" in error["message"]
        for word in ("n", "w", "a", "l", "j 1", "unt", "!count = 0"):
            (error,) = (await cast("all", word))["errors"]
            assert error["message"].startswith("is running")
        with pytest.raises(RequestFailed, match="attach RANK"):
            await cast("all", "interact")
        done.touch()
        assert [await rank.ended(within=LIMIT) for rank in ranks] == [0, 0]


@asynccontextmanager
async def forked(count: int) -> AsyncIterator[tuple[list[int], list[int]]]:
    """`count` ranks with their adapters inside; yields ports and pids, all killed at the end."""
    first = free_ports(count)
    environment = {**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, FORKED, str(first), str(count),
        stdout=asyncio.subprocess.PIPE, start_new_session=True, env=environment,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        pids = json.loads(await asyncio.wait_for(process.stdout.readline(), LIMIT))
        yield list(range(first, first + count)), pids
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@pytest.mark.long
@pytest.mark.heavy
async def test_sixty_four_ranks_and_one_that_hangs() -> None:
    within = 20.0  # s; half of it for a step: ample for 63 ranks, and waited out for the other
    async with (
        forked(64) as (ports, pids),
        driving(ports, {FORKED: [line_of(FORKED, "loss")]}, settings=PATIENT) as driver,
    ):
        cast = Caster(driver)
        await driver.stopped(line_of(FORKED, "loss"), 64, within=LIMIT)
        told = await cast.values("all", "p rank")
        assert told == {str(rank): str(rank) for rank in range(64)}
        body = await cast("all", "p step")
        assert [(r["ranks"], r["value"]) for r in body["results"]] == [
            ("0-59", "0"),
            ("60-63", "1"),
        ]
        assert body["outliers"] == "60-63"
        os.kill(pids[17], signal.SIGSTOP)
        try:
            body = await cast("all", "p step", timeout=within)
            assert body["missing"] == "17"
            assert [r["ranks"] for r in body["results"]] == ["0-16,18-59", "60-63"]
            body = await cast("all", "n", timeout=within)
            assert body["missing"] == "17"
            assert [r["ranks"] for r in body["results"]] == ["0-16,18-63"]
            assert await cast.one("all - 17", "c") == "running"
        finally:
            os.kill(pids[17], signal.SIGCONT)
