"""Breakpoints in code that came by value: the file of the editor is none of the rank's."""

from __future__ import annotations

import asyncio
import marshal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import Json
from tests.real.driving import Driver, let_end, script
from tests.support.processes.commands import LIMIT
from tests.support.processes.ranks import Rank, debugpy_ranks
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = script("by_value")
DRIVER: Final = "def task(number):\n    twice = 2 * number\n    return twice\n"
LINE: Final = 3
ELSEWHERE: Final = "/home/of/the/driver"
MISSING: Final = "file missing on ranks 0-1"


class Job:
    """The editor's file, and the bytes that its code comes as, once there are any."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.driver = self.home / "driver.py"
        self.driver.write_text(DRIVER)
        self.code = folder / "code"
        self.done = folder / "done"

    def send_code(self, path: str, text: str = DRIVER) -> None:
        """What the ranks run, under that name of a file."""
        new = self.code.with_suffix(".new")
        new.write_bytes(marshal.dumps(compile(text, path, "exec")))
        new.rename(self.code)

    @asynccontextmanager
    async def attached(
        self, path: str = "", **arguments: Any
    ) -> AsyncIterator[tuple[Driver, list[Rank]]]:
        """Two ranks, and a client with a breakpoint in its own file, or under another path."""
        words = [str(self.code), str(self.done)]
        mapped = [{"localRoot": str(self.home), "remoteRoot": ELSEWHERE}]
        async with (
            debugpy_ranks(2, PROGRAM, arguments=words) as ranks,
            session([rank.port for rank in ranks]) as running,
        ):
            lines = {path or str(self.driver): [LINE]}
            attach = {"justMyCode": True, "pathMappings": mapped, **arguments}
            yield await Driver.attach(running, breakpoints=lines, **attach), ranks


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


async def breakpoint_is(driver: Driver, wanted: Callable[[Json], bool]) -> None:
    """Wait until this is so of the one breakpoint, as it is told."""
    while True:
        body = await driver.client.request("breakpoints", timeout=LIMIT)
        if all(map(wanted, body["breakpoints"])):
            return
        await driver.client.wait_event("breakpoint", timeout=LIMIT)


@pytest.mark.parametrize("name", ["mapped", "its own"])
@pytest.mark.parametrize(
    "later", [False, pytest.param(True, marks=pytest.mark.heavy)], ids=["before", "later"]
)
async def test_a_breakpoint_in_it_hits(job: Job, name: str, later: bool) -> None:
    """Under the name that the mapping gives the file in the rank, or the one that it has here."""
    path = f"{ELSEWHERE}/driver.py" if name == "mapped" else str(job.driver)
    if not later:
        job.send_code(path)
    async with job.attached() as (driver, ranks):
        if later:
            await breakpoint_is(driver, lambda told: MISSING in (told["message"] or ""))
            job.send_code(path)
        await driver.stopped(LINE, 2)
        assert await driver.value(1, "(number, twice)") == "(3, 6)"
        (frame, *_) = await driver.frames(0)
        assert frame["source"]["path"] == str(job.driver)
        assert not frame["source"].get("sourceReference")
        await breakpoint_is(driver, lambda told: told["verified"] and not told["message"])
        await choose_none(driver, str(job.driver))
        let_end(job.done)
        await driver.go_on()
        assert [await rank.ended(within=LIMIT) for rank in ranks] == [0, 0]


@pytest.mark.parametrize("equal", [True, False], ids=["same text", "another text"])
async def test_the_editors_text_is_brought_where_it_is_that_of_the_code(
    job: Job, equal: bool
) -> None:
    """Tracebacks then have lines, and a client that lacks the file is shown it."""
    sent = DRIVER if equal else DRIVER.replace("2 *", "3 *")
    path = f"{ELSEWHERE}/driver.py"
    job.send_code(path, sent)
    async with job.attached() as (driver, ranks):
        await driver.stopped(LINE, 2)
        line = f"__import__('linecache').getline({path!r}, {LINE})"
        if equal:
            await breakpoint_is(driver, lambda told: told["verified"] and not told["message"])
            await brought(driver, line)
        else:
            differs = f"file differs on ranks 0-1: {path}"
            await breakpoint_is(driver, lambda told: differs in (told["message"] or ""))
            assert await driver.value(1, line) == "''"
        let_end(job.done)
        await choose_none(driver, str(job.driver))
        await driver.go_on()
        assert [await rank.ended(within=LIMIT) for rank in ranks] == [0, 0]


async def brought(driver: Driver, line: str) -> None:
    """The rank's text of the line comes a moment after the breakpoint is verified."""
    deadline = time.monotonic() + LIMIT
    while (text := await driver.value(1, line)) != repr("    return twice\n"):
        assert time.monotonic() < deadline, text
        await asyncio.sleep(0.01)


async def choose_none(driver: Driver, path: str) -> None:
    none = {"source": {"path": path}, "breakpoints": []}
    await driver.client.request("setBreakpoints", none, timeout=LIMIT)


async def test_where_the_editor_has_no_file_either_the_code_is_shown_read_only(job: Job) -> None:
    """By debugpy's account of the bytes: there is no text anywhere."""
    path = f"{ELSEWHERE}/driver.py"
    job.send_code(path)
    async with job.attached(path, pathMappings=[]) as (driver, ranks):
        await driver.stopped(LINE, 2)
        source = (await driver.frames(0))[0]["source"]
        asked = {"source": source, "sourceReference": source["sourceReference"]}
        body = await driver.client.request("source", asked, timeout=LIMIT)
        assert "twice" in body["content"]
        let_end(job.done)
        await choose_none(driver, path)
        await driver.go_on()
        assert [await rank.ended(within=LIMIT) for rank in ranks] == [0, 0]
