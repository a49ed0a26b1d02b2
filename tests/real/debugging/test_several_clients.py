"""An editor and a console at once on real ranks: steps, breakpoints on one line, who leaves."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from tests.real.debugging.tour_program import PATIENT
from tests.real.driving import COUNT, COUNTING, SCRIPTS, Driver, StartRanks, ends_well
from tests.support.clients.live_editor import live
from tests.support.editors import VSCodeModel
from tests.support.session import Session, session

pytestmark = pytest.mark.real
Json = dict[str, Any]
PATIENCE: Final = 30.0  # s; not a wait
STOCK: Final[Json] = {"type": "debugpy", "request": "attach", "justMyCode": True}


async def wanting(running: Session, name: str, *wanted: Json, **arguments: Any) -> Driver:
    """A client that has set its breakpoints on the counting line, and not yet configured."""
    client = await running.client(name)
    await client.request("initialize", {"clientID": name, "adapterID": "debugpy"})
    client.send("attach", {"justMyCode": False, **arguments})
    await client.wait_event("initialized")
    source = {"path": COUNTING}
    body = {"source": source, "breakpoints": [{"line": COUNT, **one} for one in wanted]}
    answer = await client.request("setBreakpoints", body)
    assert [one["verified"] for one in answer["breakpoints"]] == [True] * len(wanted)
    return Driver(running, client)


async def stopped_again(driver: Driver, after: int) -> int:
    """Wait until all four ranks stand at one count behind `after`; return it."""

    async def counts() -> set[int]:
        await driver.states(*["stopped"] * 4, within=PATIENCE)
        return {int(await driver.value(rank, "count")) for rank in range(4)}

    (count,) = await counts()
    assert count > after
    return count


async def test_a_step_in_one_moves_the_other(start_ranks: StartRanks, done: Path) -> None:
    ranks = await start_ranks(4, COUNTING, arguments=[str(done)])
    async with session([rank.port for rank in ranks]) as running:
        async with live(VSCodeModel({COUNTING: [COUNT]}), running.port, STOCK) as editor:

            async def both_see(line: int) -> None:
                def shown() -> bool:
                    everyone = editor.shown == ["stopped"] * 4
                    return everyone and editor.model.arrow == (editor.model.focus, line)

                await editor.until(shown, f"line {line} in the editor", within=PATIENCE)
                await console.stopped(line, within=PATIENCE)
                frame = (await console.frames(0, levels=1))[0]
                assert (frame["source"]["path"], frame["line"]) == (COUNTING, line)

            console = await Driver.attach(running, client_id="dap-mux-console")
            await both_see(COUNT)
            editor.send(editor.model.press_f10())
            await both_see(COUNT + 1)
            await console.look(2)
            await console.control("next")
            await both_see(COUNT - 1)
            assert editor.resumed() == [("next", editor.resumed()[0][1])]
            await console.go_on()
            await both_see(COUNT)
            await console.leave()
        await ends_well(ranks, done)


ON_ONE_LINE: Final = [
    ({"condition": "count == 5"}, {"hitCondition": "%4"}, [3, 5, 7]),
    ({"hitCondition": "3"}, {"hitCondition": "%4"}, [2, 3, 7]),
]


@pytest.mark.parametrize(("editor", "console", "expected"), ON_ONE_LINE)
async def test_breakpoints_of_both_on_one_line_stop_what_they_should(
    start_ranks: StartRanks, done: Path, editor: Json, console: Json, expected: list[int]
) -> None:
    ranks = await start_ranks(4, COUNTING, arguments=[str(done)])
    async with session([rank.port for rank in ranks], settings=PATIENT) as running:
        first = await wanting(running, "editor", editor)
        second = await wanting(running, "console", console)
        for driver in (first, second):
            await driver.client.request("configurationDone")
        count = -1
        for wanted in expected:
            count = await stopped_again(first, count)
            assert count == wanted
            await first.go_on()
        await second.leave()
        await first.ends_well(ranks, done)


async def test_logpoints_of_both_on_one_line_are_both_logged(
    start_ranks: StartRanks, done: Path
) -> None:
    (rank,) = await start_ranks(1, COUNTING, arguments=[str(done)])
    async with session([rank.port], settings=PATIENT) as running:
        only = {"hitCondition": ">= 3"}  # again and again: who configures last hears it, too
        first = await wanting(running, "editor", {"logMessage": "first {count}", **only})
        second = await wanting(running, "console", {"logMessage": "second {count}", **only})
        for driver in (first, second):
            await driver.client.request("configurationDone")
        for driver in (first, second):
            await says(driver, r"first (\d+)\nsecond \1\n")
            assert not re.search(r"(first|second) [01]\n", driver.output)
        await ends_well([rank], done)


async def says(driver: Driver, pattern: str) -> None:
    """Wait until the client has heard that."""

    def heard() -> bool:
        return bool(re.search(pattern, driver.output))

    await driver.client.wait_for(heard, timeout=PATIENCE, what=pattern)


# Each at its own edge


class Place:
    """A client with its own roots and manners, at a real session."""

    def __init__(self, running: Session, client: DapClient) -> None:
        self.driver = Driver(running, client)
        self.client = client

    @classmethod
    async def join(cls, running: Session, path: str, line: int, **more: Any) -> Place:
        """Attach with a breakpoint; `more`: for `initialize` under "about", else for `attach`."""
        client = await running.client("client")
        about = more.pop("about", {})
        await client.request("initialize", {"adapterID": "debugpy", **about})
        attached = client.send("attach", {"justMyCode": False, **more})
        await client.wait_event("initialized")
        wanted = {"source": {"path": path}, "breakpoints": [{"line": line}]}
        (told,) = (await client.request("setBreakpoints", wanted))["breakpoints"]
        assert told["verified"], told
        assert (told["source"]["path"], told["line"]) == (path, line)
        await client.request("configurationDone")
        await asyncio.wait_for(attached, PATIENCE)
        return cls(running, client)

    async def stands(self) -> tuple[str, int]:
        """Where rank 0 stands, as this client is told."""
        await self.driver.until(
            lambda entries: all(one["state"] == "stopped" for one in entries), within=PATIENCE
        )
        frame = (await self.driver.frames(0, levels=1))[0]
        return frame["source"]["path"], frame["line"]


NAME: Final = Path(COUNTING).name
THERE: Final = str(SCRIPTS)
LINUX: Final[Json] = {
    "pathMappings": [{"localRoot": "/home/u/work", "remoteRoot": THERE}],
    "clientOS": "unix",
}
WINDOWS: Final[Json] = {
    "pathMappings": [{"localRoot": "c:\\Users\\U\\work", "remoteRoot": THERE}],
    "clientOS": "windows",
}
ON_LINUX: Final = f"/home/u/work/{NAME}"
ON_WINDOWS: Final = f"c:\\Users\\U\\work\\{NAME}"


async def test_windows_beside_linux(start_ranks: StartRanks, done: Path) -> None:
    """Neither has the ranks' paths, and both set, stop and look in one file."""
    ranks = await start_ranks(2, COUNTING, arguments=[str(done)])
    async with session([rank.port for rank in ranks], settings=PATIENT) as running:
        one = await Place.join(running, ON_WINDOWS, COUNT, **WINDOWS)
        assert await one.stands() == (ON_WINDOWS, COUNT)
        two = await Place.join(running, ON_LINUX, COUNT + 1, **LINUX)
        assert await two.stands() == (ON_LINUX, COUNT)
        await two.driver.go_on()
        await two.driver.stopped(COUNT + 1, 2, within=PATIENCE)
        assert await one.stands() == (ON_WINDOWS, COUNT + 1)
        await one.driver.leave()
        assert await two.stands() == (ON_LINUX, COUNT + 1)
        await two.driver.leave()
        await ends_well(ranks, done)


async def test_lines_from_0_and_uris(start_ranks: StartRanks, done: Path) -> None:
    """The session of such a client with real debugpy: where it stops, and what it completes."""
    (rank,) = await start_ranks(1, COUNTING, arguments=[str(done)])
    manner = {"linesStartAt1": False, "columnsStartAt1": False, "pathFormat": "uri"}
    uri = f"file://{COUNTING}"
    async with session([rank.port], settings=PATIENT) as running:
        client = await Place.join(running, uri, COUNT - 1, about=manner)
        assert await client.stands() == (uri, COUNT - 1)
        frame = (await client.driver.frames(0, levels=1))[0]
        assert frame["column"] == 0
        asked = {"text": "x = coun", "column": 8, "frameId": frame["id"]}
        (target, *_) = (await client.client.request("completions", asked))["targets"]
        assert target["label"] == "count"
        assert target["start"] == 4  # debugpy counts it from 0, whatever the client does
        await client.driver.leave()
        await ends_well([rank], done)
