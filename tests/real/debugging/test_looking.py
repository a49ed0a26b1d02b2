"""Stacks, variables, values and steps, through one session over four real ranks.

The other half of `test_requests`: one test for each row of the table, values checked rank by rank.
"""

from __future__ import annotations

from itertools import chain, product
from typing import Final

import pytest

from dap_mux.client import RequestFailed
from dap_mux.engine import Settings
from tests.real.debugging.tour_program import (
    AFTER,
    BOTTOM,
    CALL,
    FOUR,
    MADE_UP,
    NESTED,
    PRINT,
    PRODUCT,
    TOUR,
    finished,
    locals_of,
    tour,
)
from tests.real.driving import Driver
from tests.support.processes.commands import LIMIT
from tests.support.processes.ranks import Rank

pytestmark = pytest.mark.real
ACROSS: Final = Settings(
    request_timeout=2 * LIMIT, breakpoint_timeout=2 * LIMIT, values_across_ranks="differing"
)


async def evaluates(driver: Driver, rank: Rank, context: str) -> None:
    """An expression's value in a rank, with and without a frame, and its failure."""
    frame = (await driver.frames(rank.rank, levels=1))[0]["id"]
    value = await driver.evaluate("size", frameId=frame, context=context)
    own, _, others = value.partition(" | ")
    assert own == str(3 * (rank.rank + 1))
    assert bool(others) is (context == "hover"), "a hover has other ranks beside it"
    pid = await driver.evaluate("__import__('os').getpid()", context=context)
    assert pid == str(rank.pid)
    if context != "clipboard":  # there debugpy puts the traceback into the clipboard
        with pytest.raises(RequestFailed, match="NameError"):
            await driver.evaluate("absent", frameId=frame, context=context)


class TestLooking:
    async def test_evaluate_scopes_variables_and_a_stack_in_pages(self) -> None:
        async with tour(AFTER, BOTTOM) as (driver, ranks):
            await driver.stopped(AFTER)
            for rank, context in product(FOUR, ("watch", "hover", "repl", "clipboard")):
                await evaluates(driver, ranks[rank], context)
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
            await driver.stopped(BOTTOM)
            for rank in FOUR:
                whole = await driver.frames(rank)
                assert [one["name"] for one in whole] == ["deep"] * 31 + ["main", "<module>"]
                pages = [await driver.frames(rank, startFrame=at, levels=11) for at in (0, 11, 22)]
                assert list(chain(*pages)) == whole
            await driver.go_on()
            await finished(ranks)
            for one in ranks:
                assert f"size {40 + one.rank + 2} both" in one.output

    async def test_variables_that_differ(self) -> None:
        """An expression sees the frame's variables in every rank; each stop evaluates it again."""
        async with tour(AFTER, BOTTOM, settings=ACROSS) as (driver, ranks):
            await driver.stopped(AFTER)
            for rank in FOUR:
                _, _, rows = await locals_of(driver, rank)
                assert rows["size"]["value"] == f"{3 * (rank + 1)}  ▁▃▆█"
            await driver.go_on()
            await driver.stopped(BOTTOM)
            _, _, rows = await locals_of(driver, 0)
            assert not any("acrossRanks" in row for row in rows.values()), "all are equal there"
            await driver.go_on()
            await finished(ranks)

    async def test_step_in_targets_modules_and_made_up_sources(self) -> None:
        async with tour(NESTED, MADE_UP) as (driver, ranks):
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
