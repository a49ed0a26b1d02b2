"""Breakpoints, exceptions and refusals, through one session over four real ranks.

One test for each row of the table, or for a few that belong together; values are checked rank by
rank, so that no answer can come from the wrong one. `test_looking` has the rest of the table.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from dap_mux.client import RequestFailed
from dap_mux.engine.routes import ROUTES
from tests.real.debugging.tour_program import (
    AFTER,
    CALL,
    FAIL,
    FOUR,
    PATIENCE,
    PRINT,
    RISKY,
    TOUR,
    TURN,
    everywhere,
    finished,
    tour,
)
from tests.real.driving import Driver

pytestmark = pytest.mark.real


async def says(driver: Driver, text: str) -> None:
    """Wait until the client has heard that: what ranks say comes from each by itself."""
    await driver.client.wait_for(lambda: text in driver.output, timeout=PATIENCE, what=text)


class TestBreakpoints:
    async def test_conditions_with_ranks_and_their_numbers(self) -> None:
        chosen = {"line": TURN, "condition": "ranks(0,1): turn == 3 + $rank"}
        async with tour(chosen, CALL) as (driver, ranks):
            await driver.until(lambda e: [one["line"] for one in e] == [TURN, TURN, CALL, CALL])
            assert [await driver.value(rank, "turn") for rank in (2, 3, 0, 1)] == [
                "7",
                "7",
                "3",
                "4",
            ]
            await driver.control("continue", 0, singleThread=True)
            await driver.until(lambda e: [one["line"] for one in e] == [CALL, TURN, CALL, CALL])
            await driver.client.request("release", {"ranks": "all"})
            await finished(ranks)

    async def test_hit_conditions(self) -> None:
        async with tour({"line": TURN, "hitCondition": "%4"}) as (driver, ranks):
            await driver.stopped(TURN)
            assert await everywhere(driver, "turn") == ["3"] * 4
            await driver.control("continue")
            await driver.until(lambda entries: all(one["state"] == "stopped" for one in entries))
            assert await everywhere(driver, "turn") == ["7"] * 4
            await driver.go_on()
            await finished(ranks)

    async def test_logpoints(self) -> None:
        said = {"line": TURN, "logMessage": "ranks(1,2): turn {turn} of $rank"}
        async with tour(said, CALL) as (driver, ranks):
            await driver.stopped(CALL)
            for last in ("[1] turn 7 of 1\n", "[2] turn 7 of 2\n"):
                await says(driver, last)
            for rank in (1, 2):
                lines = [f"[{rank}] turn {turn} of {rank}" for turn in range(8)]
                said_lines = driver.output.splitlines()
                assert [one for one in said_lines if one.startswith(f"[{rank}]")] == lines
            assert "[0" not in driver.output
            await driver.go_on()
            await finished(ranks)

    async def test_what_cannot_be_is_said(self) -> None:
        wanted = [
            {"line": TURN, "condition": "differ: no expression"},
            {"line": CALL, "condition": "ranks(9): True"},
            {"line": AFTER},
        ]
        async with tour(PRINT) as (driver, ranks):
            await driver.stopped(PRINT)
            answer = await driver.client.request(
                "setBreakpoints", {"source": {"path": TOUR}, "breakpoints": wanted}
            )
            differ, absent, good = answer["breakpoints"]
            assert not differ["verified"]
            assert "no expression" in differ["message"]
            assert not absent["verified"]
            assert absent["message"]
            assert good["verified"]
            assert "message" not in good
            await driver.go_on()
            await finished(ranks)

    async def test_function_breakpoints(self) -> None:
        async with tour(TURN) as (driver, ranks):
            await driver.stopped(TURN)
            answer = await driver.client.request(
                "setFunctionBreakpoints", {"breakpoints": [{"name": "area"}]}
            )
            assert [one["verified"] for one in answer["breakpoints"]] == [True]
            await driver.client.request("setBreakpoints", {"source": {"path": TOUR}})
            await driver.control("continue")
            await driver.until(lambda e: {one["function"] for one in e} == {"area"})
            assert await everywhere(driver, "width") == ["1", "2", "3", "4"]
            await driver.client.request("setFunctionBreakpoints", {"breakpoints": []})
            await driver.go_on()
            await finished(ranks)


class TestExceptions:
    async def test_raised_and_its_information(self) -> None:
        async with tour(CALL) as (driver, ranks):
            await driver.stopped(CALL)
            with pytest.raises(RequestFailed, match="not stopped at an exception"):
                await driver.client.request(
                    "exceptionInfo", {"threadId": driver.row(0)}, timeout=PATIENCE
                )
            await driver.client.request("setExceptionBreakpoints", {"filters": ["raised"]})
            await driver.control("continue")
            await driver.stopped(RISKY)
            for rank in FOUR:
                row = {"threadId": driver.row(rank)}
                about = await driver.client.request("exceptionInfo", row)
                assert about["exceptionId"] == "ZeroDivisionError"
                assert about["breakMode"] == "always"
            await driver.client.request("setExceptionBreakpoints", {"filters": []})
            await driver.go_on()
            await finished(ranks)

    async def test_uncaught_in_one_rank(self) -> None:
        async with tour(exceptions=("uncaught",), arguments=("fail",)) as (driver, ranks):
            gone = ("exited", None)
            wanted = [gone, gone, ("stopped", FAIL), gone]
            await driver.until(
                lambda entries: [(e["state"], e["line"]) for e in entries] == wanted,
                what="all but rank 2 ended",
            )
            await driver.client.wait_for(
                lambda: bool(driver.stops), timeout=PATIENCE, what="its stop told"
            )
            assert (await driver.entries())[2]["reason"] == "exception"
            about = await driver.client.request("exceptionInfo", {"threadId": driver.row(2)})
            assert about["exceptionId"] == "ValueError"
            assert about["breakMode"] == "unhandled"
            stop = driver.events("stopped")[-1]
            assert stop["threadId"] == driver.row(2)
            assert (stop["description"], stop["text"]) == ("rank two had enough", "ValueError")
            await driver.go_on()
            await finished(ranks, [0, 0, 1, 0])


UNANSWERABLE: Final = sorted(name for name, route in ROUTES.items() if route.handler is None)


async def test_what_debugpy_never_answers_is_refused_at_once() -> None:
    async with tour(CALL) as (driver, ranks):
        await driver.stopped(CALL)
        for command in UNANSWERABLE:
            with pytest.raises(RequestFailed, match="not supported"):
                await driver.client.request(command, ARGUMENTS.get(command, {}), timeout=PATIENCE)
        await driver.go_on()
        await finished(ranks)


async def test_bogus_handles_are_errors_at_once() -> None:
    async with tour(CALL) as (driver, ranks):
        await driver.stopped(CALL)
        old = (await driver.frames(1, levels=1))[0]["id"]
        await driver.control("next", 1, singleThread=True)
        await driver.until(lambda entries: entries[1]["line"] == AFTER)
        for command, arguments in (
            ("stackTrace", {"threadId": 99}),
            ("continue", {"threadId": 0}),
            ("scopes", {"frameId": 4711}),
            ("setExpression", {"frameId": old, "expression": "a", "value": "1"}),
            ("variables", {"variablesReference": 4711}),
            ("evaluate", {"expression": "1", "frameId": old}),
            ("setVariable", {"variablesReference": 1, "name": "a", "value": "1"}),
            ("goto", {"threadId": driver.row(0), "targetId": 5}),
        ):
            with pytest.raises(RequestFailed, match=r"stale|unknown|no thread|not a"):
                await driver.client.request(command, arguments, timeout=PATIENCE)
        await driver.client.request("release", {"ranks": "all"})
        await finished(ranks)


ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "breakpointLocations": {"source": {"path": TOUR}, "line": 1},
    "dataBreakpointInfo": {"name": "a"},
    "setDataBreakpoints": {"breakpoints": []},
    "setInstructionBreakpoints": {"breakpoints": []},
    "stepBack": {"threadId": 1},
    "reverseContinue": {"threadId": 1},
    "restartFrame": {"frameId": 1},
    "readMemory": {"memoryReference": "1", "count": 1},
    "writeMemory": {"memoryReference": "1", "data": ""},
    "disassemble": {"memoryReference": "1", "instructionCount": 1},
    "locations": {"locationReference": 1},
    "runInTerminal": {"cwd": "/", "args": []},
    "startDebugging": {"configuration": {}, "request": "attach"},
}
