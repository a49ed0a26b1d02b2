"""Background work: one run at a time, and one more for all that has changed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dap_mux.frontends.lsp.server import Coalescer


class Works:
    """Work that waits to be let go, and counts its runs."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.coalescer = Coalescer(self._start)
        self.began: list[str] = []
        self.may_end = asyncio.Event()
        self.failing = False

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def ask(self, key: str) -> None:
        """Ask for a run."""

        async def work() -> None:
            self.began.append(key)
            await self.may_end.wait()
            if self.failing:
                raise ValueError(key)

        self.coalescer.run(key, work)


async def test_what_is_asked_for_meanwhile_runs_once_more() -> None:
    works = Works()
    works.ask("a")
    await asyncio.sleep(0)
    for _ in range(9):
        works.ask("a")
    assert works.began == ["a"]
    works.may_end.set()
    await asyncio.gather(*works.tasks)
    assert works.began == ["a", "a"]
    works.ask("a")
    await asyncio.gather(*works.tasks)
    assert works.began == ["a", "a", "a"]


async def test_keys_do_not_wait_for_each_other() -> None:
    works = Works()
    works.ask("a")
    works.ask("b")
    await asyncio.sleep(0)
    assert works.began == ["a", "b"]
    works.may_end.set()
    await asyncio.gather(*works.tasks)


async def test_after_a_failure_it_runs_again() -> None:
    works = Works()
    works.failing = True
    works.may_end.set()
    works.ask("a")
    with pytest.raises(ValueError, match="a"):
        await works.tasks[0]
    works.failing = False
    works.ask("a")
    await works.tasks[1]
    assert works.began == ["a", "a"]
