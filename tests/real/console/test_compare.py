"""`compare` on real ranks: numbers, arrays that stay where they are, running and silent ranks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from dap_mux.client import RequestFailed
from dap_mux.engine import Settings
from tests.real.driving import Driver, driving, script
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank, debugpy_ranks

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
ARGUMENT_VALUES: Final = script("values")
HERE: Final = line_of(ARGUMENT_VALUES, "here")
PATIENT: Final = Settings(request_timeout=LIMIT)  # a slow rank is not a silent one


@asynccontextmanager
async def four() -> AsyncIterator[tuple[Driver, list[Rank]]]:
    """Four ranks that stand where their values are."""
    async with (
        debugpy_ranks(4, ARGUMENT_VALUES) as ranks,
        driving(ranks, {ARGUMENT_VALUES: [HERE]}, settings=PATIENT, stopped=HERE) as driver,
    ):
        yield driver, ranks


async def compare(driver: Driver, expression: str, **more: Any) -> dict[str, Any]:
    arguments = {"expression": expression, "timeout": LIMIT, **more}
    return await driver.client.request("compare", arguments, timeout=2 * LIMIT)


def values(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Which ranks have which value."""
    return [(one["ranks"], one["value"]) for one in body["values"]]


async def test_numbers_arrays_and_text() -> None:
    async with four() as (driver, _):
        body = await compare(driver, "loss")
        assert values(body) == [
            ("0-1,3", "2.25"),
            ("2", "nan"),
        ]
        assert body["outliers"] == "2"
        assert (body["statistics"]["mean"], body["statistics"]["nan"]) == (2.25, 1)

        body = await compare(driver, "weights")
        assert values(body) == [
            ("0,2", "ndarray[2, 3] float32 · norm 0 · nan 0 · inf 0"),
            ("1,3", "ndarray[2, 3] float32 · norm 2.44948974 · nan 0 · inf 0"),
        ]
        assert body["statistics"] is None

        body = await compare(driver, "scalar + $rank * 0  # of a kind of its own")
        assert values(body) == [("0-3", "0.1")]
        assert body["statistics"]["histogram"] is None, "there are four numbers"

        body = await compare(driver, "config['lr'], 'text'", ranks="ranks(0:3)")
        assert values(body)[0] == ("1-2", "(0.1, 'text')")
        assert body["outliers"] == "0"

        body = await compare(driver, "$rank * 1.001", tolerance={"absolute": 1.5})
        assert [one["ranks"] for one in body["values"]] == ["0-1", "2-3"]


async def test_dimensions_of_the_ranks_own_mesh() -> None:
    """Read while the ranks run; a mesh that is renamed shows up when it is spoken of."""
    async with four() as (driver, _):
        body = await compare(driver, "rank if False else $rank", ranks="ranks(tp=1)")
        assert [one["value"] for one in body["values"]] == ["1", "3"]
        assert [entry["coords"] for entry in await driver.entries()] == [
            {"dp": dp, "tp": tp} for dp in range(2) for tp in range(2)
        ]
        for _ in range(2):
            await driver.states(*["stopped"] * 4)
            await driver.go_on()
        await driver.states(*["running"] * 4)
        with pytest.raises(RequestFailed, match="no dimension 'shrad': did you mean shard"):
            await compare(driver, "loss", ranks="ranks(shrad=0)")
        body = await compare(driver, "$replicate", ranks="ranks(replicate=(1,3), shard=0)")
        assert [one["value"] for one in body["values"]] == ["1", "3"]


async def test_a_device_that_hangs_does_not_keep_its_rank() -> None:
    """A collective that never ends: what is known without the device is told, and all goes on."""
    program = script("hanging_device")
    here, after = line_of(program, "here"), line_of(program, "after")
    async with (
        debugpy_ranks(2, program) as ranks,
        driving(ranks, {program: [here, after]}, settings=PATIENT, stopped=here) as driver,
    ):
        for _ in range(2):
            body = await compare(driver, "loss")
            assert values(body) == [
                ("0", "2.25"),
                ("1", "Tensor[2, 3] bfloat16 cuda:1 · not computed yet"),
            ]
        rows = (await driver.client.request("threads", timeout=LIMIT))["threads"]
        assert [row["name"] for row in rows] == ["rank 0", "rank 1"]  # no helper of ours among them
        await driver.go_on()
        await driver.stopped(after, 2)
        assert values(await compare(driver, "step")) == [("0-1", "3")]
