"""Every request that debugpy supports, through one session over four real ranks.

One test for each row of the table, or for a few that belong together; values are checked rank by
rank, so that no answer can come from the wrong one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import chain, product
from typing import Any, Final

import pytest

from dap_mux.client import RequestFailed
from dap_mux.client.wire import Json
from dap_mux.engine.routes import ROUTES
from tests.real.driving import Driver, line_of, script
from tests.support.ranks import Rank, debugpy_ranks
from tests.support.session import session

pytestmark = pytest.mark.real
TOUR: Final = script("tour")
TURN, CALL, AFTER, NESTED, PRODUCT, BOTTOM, TWICE, RISKY, CAUGHT, MADE_UP, PRINT, FAIL = (
    line_of(TOUR, mark)
    for mark in (
        "turn", "call", "after", "nested", "product", "bottom", "twice", "risky", "caught",
        "made-up", "print", "fail",
    )
)  # fmt: skip
FOUR: Final = range(4)
Tour = Callable[..., AbstractAsyncContextManager[tuple[Driver, list[Rank]]]]


@asynccontextmanager
async def tour(
    *breakpoints: int | Json, exceptions: tuple[str, ...] = (), arguments: tuple[str, ...] = ()
) -> AsyncIterator[tuple[Driver, list[Rank]]]:
    """Four ranks held at these breakpoints of the tour, and whoever drives them."""
    async with (
        debugpy_ranks(4, TOUR, arguments=arguments) as ranks,
        session([rank.port for rank in ranks]) as running,
    ):
        driver = await Driver.attach(
            running, breakpoints={TOUR: breakpoints}, exceptions=exceptions
        )
        yield driver, ranks


async def everywhere(driver: Driver, expression: str) -> list[str]:
    """What it is in each rank's top frame; the focus is rank 0's in the end."""
    values = [await driver.value(rank, expression) for rank in reversed(FOUR)]
    return values[::-1]


async def finished(ranks: list[Rank], codes: list[int] | None = None) -> None:
    assert [await rank.ended() for rank in ranks] == (codes or [0] * 4)


async def locals_of(driver: Driver, rank: int) -> tuple[int, int, dict[str, Json]]:
    """The top frame of a rank, the reference of its locals, and the variables by name."""
    frame = (await driver.frames(rank, levels=1))[0]["id"]
    scopes = (await driver.client.request("scopes", {"frameId": frame}))["scopes"]
    reference = next(one["variablesReference"] for one in scopes if one["name"] == "Locals")
    answer = await driver.client.request("variables", {"variablesReference": reference})
    return frame, reference, {one["name"]: one for one in answer["variables"]}


class TestBreakpoints:
    @pytest.mark.quick
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
            await driver.client.wait_for(lambda: "[2] turn 7 of 2" in driver.output)
            for rank in (1, 2):
                lines = [f"[{rank}] turn {turn} of {rank}" for turn in range(8)]
                said_lines = driver.output.splitlines()
                assert [one for one in said_lines if one.startswith(f"[{rank}]")] == lines
            assert "[0" not in driver.output
            await driver.go_on()
            await finished(ranks)

    async def test_what_cannot_be_is_said(self) -> None:
        wanted = [
            {"line": TURN, "condition": "barrier: True"},
            {"line": CALL, "condition": "ranks(9): True"},
            {"line": AFTER},
        ]
        async with tour(PRINT) as (driver, ranks):
            await driver.stopped(PRINT)
            answer = await driver.client.request(
                "setBreakpoints", {"source": {"path": TOUR}, "breakpoints": wanted}
            )
            barrier, absent, good = answer["breakpoints"]
            assert not barrier["verified"]
            assert "barrier" in barrier["message"]
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
                await driver.client.request("exceptionInfo", {"threadId": driver.row(0)}, timeout=1)
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
            await driver.states("exited", "exited", "stopped", "exited")
            await driver.client.wait_for(lambda: bool(driver.stops), what="its stop told")
            failed = (await driver.entries())[2]
            assert (failed["line"], failed["reason"]) == (FAIL, "exception")
            about = await driver.client.request("exceptionInfo", {"threadId": driver.row(2)})
            assert about["exceptionId"] == "ValueError"
            assert about["breakMode"] == "unhandled"
            stop = driver.events("stopped")[-1]
            assert stop["threadId"] == driver.row(2)
            assert (stop["description"], stop["text"]) == ("rank two had enough", "ValueError")
            await driver.go_on()
            await finished(ranks, [0, 0, 1, 0])


class TestLooking:
    async def test_stack_in_pages(self) -> None:
        async with tour(BOTTOM) as (driver, ranks):
            await driver.stopped(BOTTOM)
            for rank in FOUR:
                whole = await driver.frames(rank)
                assert [one["name"] for one in whole] == ["deep"] * 31 + ["main", "<module>"]
                pages = [await driver.frames(rank, startFrame=at, levels=11) for at in (0, 11, 22)]
                assert list(chain(*pages)) == whole
            await driver.go_on()
            await finished(ranks)

    async def test_scopes_variables_and_setting_them(self) -> None:
        async with tour(AFTER) as (driver, ranks):
            await driver.stopped(AFTER)
            for rank in FOUR:
                frame, reference, before = await locals_of(driver, rank)
                assert before["size"]["value"] == str(3 * (rank + 1))
                inside = {"variablesReference": before["values"]["variablesReference"]}
                answer = await driver.client.request("variables", inside)
                items = {one["name"]: one["value"] for one in answer["variables"]}
                assert items["'rank'"] == str(rank)
                assert items["'squares'"] == "[0, 1, 4, 9, 16]"
                number = {"variablesReference": reference, "name": "size", "value": f"{rank} + 40"}
                assert (await driver.client.request("setVariable", number))[
                    "value"
                ] == f"{40 + rank}"
                expression = {
                    "expression": "values['rank']",
                    "value": "'changed'",
                    "frameId": frame,
                }
                await driver.client.request("setExpression", expression)
                assert await driver.value(rank, "values['rank']") == "'changed'"
            await driver.go_on()
            await finished(ranks)
            for one in ranks:
                assert f"size {40 + one.rank + 2} both" in one.output

    async def test_evaluate(self) -> None:
        async with tour(AFTER) as (driver, ranks):
            await driver.stopped(AFTER)
            contexts = ("watch", "hover", "repl", "clipboard")
            for rank, context in product(FOUR, contexts):
                frame = (await driver.frames(rank, levels=1))[0]["id"]
                value = await driver.evaluate("size", frameId=frame, context=context)
                assert value == str(3 * (rank + 1))
                assert await driver.evaluate("__import__('os').getpid()", context=context) == str(
                    ranks[rank].pid
                )
                if context != "clipboard":  # there debugpy puts the traceback into the clipboard
                    with pytest.raises(RequestFailed, match="NameError"):
                        await driver.evaluate("absent", frameId=frame, context=context)
            await driver.go_on()
            await finished(ranks)

    async def test_completions(self) -> None:
        async with tour(AFTER) as (driver, ranks):
            await driver.stopped(AFTER)
            for rank in FOUR:
                frame = (await driver.frames(rank, levels=1))[0]["id"]
                typed = {"text": "valu", "column": 5, "frameId": frame}
                answer = await driver.client.request("completions", typed)
                assert "values" in {one["label"] for one in answer["targets"]}
            await driver.go_on()
            await finished(ranks)

    async def test_modules_and_made_up_sources(self) -> None:
        async with tour(MADE_UP) as (driver, ranks):
            await driver.stopped(MADE_UP)
            modules = (await driver.client.request("modules", {}))["modules"]
            assert TOUR in {one.get("path") for one in modules}
            await driver.control("stepIn")
            await driver.until(lambda entries: all(one["line"] == 1 for one in entries))
            for rank in FOUR:
                source = (await driver.frames(rank, levels=1))[0]["source"]
                reference = {"sourceReference": source["sourceReference"]}
                answer = await driver.client.request("source", {"source": source, **reference})
                assert answer["content"] == "first = rank\nsecond = first + 1\n"
            await driver.go_on()
            await finished(ranks)


class TestMoving:
    async def test_step_in_targets(self) -> None:
        async with tour(NESTED) as (driver, ranks):
            await driver.stopped(NESTED)
            frame = (await driver.frames(0, levels=1))[0]["id"]
            answer = await driver.client.request("stepInTargets", {"frameId": frame})
            labels = [one["label"] for one in answer["targets"]]
            assert labels[:3] == ["twice(1)", "twice(rank)", "area(twice(1), twice(rank))"]
            target = answer["targets"][2]["id"]
            await driver.control("stepIn", 0, targetId=target, singleThread=True)
            await driver.until(lambda entries: entries[0]["line"] == PRODUCT)
            assert await driver.value(0, "(width, height)") == "(2, 0)"
            await driver.go_on()
            await finished(ranks)

    async def test_in_over_and_out_together(self) -> None:
        async with tour(CALL) as (driver, ranks):
            await driver.stopped(CALL)
            await driver.control("stepIn")
            await driver.stopped(PRODUCT)
            await driver.control("next")
            await driver.stopped(PRODUCT + 1)
            assert await everywhere(driver, "product") == ["3", "6", "9", "12"]
            await driver.control("stepOut")
            await driver.until(lambda e: {one["function"] for one in e} == {"main"})
            await driver.control("next")
            await driver.until(lambda e: {one["line"] for one in e} <= {AFTER, NESTED})
            await driver.go_on()
            await finished(ranks)

    async def test_goto(self) -> None:
        """One rank jumps; the others stay where they are."""
        async with tour(CALL) as (driver, ranks):
            await driver.stopped(CALL)
            await driver.value(2, "rank")
            where = {"source": {"path": TOUR}, "line": PRINT}
            (target, *_) = (await driver.client.request("gotoTargets", where))["targets"]
            await driver.control("goto", 2, targetId=target["id"])
            entries = await driver.until(lambda entries: entries[2]["line"] == PRINT)
            assert [entry["line"] for entry in entries] == [CALL, CALL, PRINT, CALL]
            await driver.client.request("release", {"ranks": "all"})
            await finished(ranks, [0, 0, 1, 0])  # what it jumped over was never assigned

    async def test_pause_and_debugger_properties(self) -> None:
        async with tour(CALL) as (driver, ranks):
            await driver.stopped(CALL)
            await driver.client.request(
                "setDebuggerProperty", {"multiThreadsSingleNotification": True}
            )
            await driver.value(0, "rank")
            await driver.evaluate("__import__('time').sleep(0)")
            await driver.control("pause")
            await driver.states(*["stopped"] * 4)
            await driver.go_on()
            await finished(ranks)


UNANSWERABLE: Final = sorted(name for name, route in ROUTES.items() if route.handler is None)


async def test_what_debugpy_never_answers_is_refused_at_once() -> None:
    async with tour(CALL) as (driver, ranks):
        await driver.stopped(CALL)
        for command in UNANSWERABLE:
            with pytest.raises(RequestFailed, match="not supported"):
                await driver.client.request(command, ARGUMENTS.get(command, {}), timeout=1)
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
            ("scopes", {"frameId": old}),
            ("variables", {"variablesReference": 4711}),
            ("evaluate", {"expression": "1", "frameId": old}),
            ("setVariable", {"variablesReference": 1, "name": "a", "value": "1"}),
            ("goto", {"threadId": driver.row(0), "targetId": 5}),
        ):
            with pytest.raises(RequestFailed, match=r"stale|unknown|no thread|not a"):
                await driver.client.request(command, arguments, timeout=1)
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
