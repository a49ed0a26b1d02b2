"""Breakpoints and exceptions, through one session over four real ranks.

One test for each row of the table, or for a few that belong together; values are checked rank by
rank, so that no answer can come from the wrong one. `test_looking` has the rest of the table.
"""

from __future__ import annotations

import pytest

from dap_mux.client import RequestFailed
from tests.real.debugging.tour_program import (
    CALL,
    FAIL,
    FOUR,
    PATIENCE,
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
