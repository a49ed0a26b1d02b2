"""The console's words and rank sets in `evaluate`, on real ranks."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.client import RequestFailed
from tests.real.console.test_compare import HERE, four
from tests.real.driving import Driver
from tests.support.processes.commands import LIMIT

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


async def evaluate(driver: Driver, text: str, context: str = "repl", **more: int) -> dict[str, Any]:
    arguments = {"expression": text, "context": context, **more}
    return await driver.client.request("evaluate", arguments, timeout=LIMIT)


async def unfold(driver: Driver, reference: int) -> dict[str, dict[str, Any]]:
    arguments = {"variablesReference": reference}
    body = await driver.client.request("variables", arguments, timeout=LIMIT)
    return {one["name"]: one for one in body["variables"]}


async def offered(driver: Driver, text: str, **more: int) -> list[str]:
    arguments = {"text": text, "column": len(text) + 1, **more}
    body = await driver.client.request("completions", arguments, timeout=LIMIT)
    for target in body["targets"]:
        typed = text[target["start"] :]
        assert target.get("text", target["label"]).startswith(typed), target
    return [target["label"] for target in body["targets"]]


@pytest.mark.quick
async def test_a_tree_of_several_ranks() -> None:
    async with four() as (driver, _):
        value = await evaluate(driver, "ranks(0:4) config", "watch")
        below = await unfold(driver, value["variablesReference"])
        assert list(below) == ["⚠ {0}", "{1-3}"]
        assert below["{1-3}"]["type"] == "dict"
        inside = await unfold(driver, below["{1-3}"]["variablesReference"])
        assert inside["'lr'"]["value"] == "0.1"
        of_rank_0 = await unfold(driver, below["⚠ {0}"]["variablesReference"])
        assert of_rank_0["'lr'"]["value"] == "0.2"

        await driver.control("next", 3, singleThread=True)
        await driver.until(lambda entries: entries[3]["line"] == HERE + 1)
        with pytest.raises(RequestFailed, match="rank 3 has run on since"):
            await unfold(driver, value["variablesReference"])
        # rank 1 has not moved, and speaks for itself
        assert await unfold(driver, below["{1-3}"]["variablesReference"])


async def test_numbers_arrays_and_completions() -> None:
    async with four() as (driver, _):
        value = await evaluate(driver, "all loss", "watch")
        assert value["result"] == "⚠ {2}: nan | {0-1,3}: 2.25"
        value = await evaluate(driver, "ranks(0,1) weights")
        below = await unfold(driver, value["variablesReference"])
        assert below["{0}"]["type"] == "ndarray"
        about = await unfold(driver, below["{1}"]["variablesReference"])
        assert (about["shape"]["value"], about["dtype"]["value"]) == ("(2, 3)", "'float32'")
        assert "data" not in about
        one = await evaluate(driver, "ranks(1) scalar", "hover")
        assert (one["result"], one["type"]) == ("0.1", "float32")

        frame = (await driver.frames(1, levels=1))[0]["id"]
        assert "%compare" in await offered(driver, "%", frameId=frame)
        assert await offered(driver, "cast ranks(0:2) wei", frameId=frame) == ["weights"]
        assert "config" in await offered(driver, "conf", frameId=frame)
        assert await offered(driver, "attach exi", frameId=frame) == ["exited"]
