"""Coroutines side by side, for what starts before anyio is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def first(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Run all until the first is done, and cancel the others. Raises what one of them raises."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def beside(background: Coroutine[Any, Any, object], main: Coroutine[Any, Any, T]) -> T:
    """Return what `main` returns; until then `background` runs too. Raises what either raises."""
    result: list[T] = []

    async def until_done() -> None:
        result.append(await main)

    await first(background, until_done())
    return result[0]
