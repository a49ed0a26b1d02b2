"""The tour: a program with a place for everything that a debugger does, in four real ranks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dap_mux.client import Json
from dap_mux.engine import Settings
from tests.real.driving import Driver, driving, script
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank, debugpy_ranks

TOUR: Final = script("tour")
TURN, CALL, AFTER, NESTED, PRODUCT, BOTTOM, TWICE, RISKY, CAUGHT, MADE_UP, PRINT, FAIL = (
    line_of(TOUR, mark)
    for mark in (
        "turn", "call", "after", "nested", "product", "bottom", "twice", "risky", "caught",
        "made-up", "print", "fail",
    )
)  # fmt: skip
FOUR: Final = range(4)
PATIENCE: Final = LIMIT  # for what is answered without asking a rank, or never
# Whoever asks a rank in vain waits longer than that, and no rank is given up for being slow.
PATIENT: Final = Settings(request_timeout=2 * LIMIT, breakpoint_timeout=2 * LIMIT)


@asynccontextmanager
async def tour(
    *breakpoints: int | Json,
    exceptions: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    settings: Settings = PATIENT,
) -> AsyncIterator[tuple[Driver, list[Rank]]]:
    """Four ranks held at these breakpoints of the tour, and whoever drives them."""
    async with (
        debugpy_ranks(4, TOUR, arguments=arguments) as ranks,
        driving(ranks, {TOUR: breakpoints}, settings=settings, exceptions=exceptions) as driver,
    ):
        yield driver, ranks


async def everywhere(driver: Driver, expression: str) -> list[str]:
    """What it is in each rank's top frame; the focus is rank 0's in the end."""
    values = [await driver.value(rank, expression) for rank in reversed(FOUR)]
    return values[::-1]


async def finished(ranks: list[Rank], codes: list[int] | None = None) -> None:
    assert [await rank.ended(within=LIMIT) for rank in ranks] == (codes or [0] * 4)


async def locals_of(driver: Driver, rank: int) -> tuple[int, int, dict[str, Json]]:
    """The top frame of a rank, the reference of its locals, and the variables by name."""
    frame = (await driver.frames(rank, levels=1))[0]["id"]
    scopes = (await driver.client.request("scopes", {"frameId": frame}))["scopes"]
    reference = next(one["variablesReference"] for one in scopes if one["name"] == "Locals")
    answer = await driver.client.request("variables", {"variablesReference": reference})
    return frame, reference, {one["name"]: one for one in answer["variables"]}
