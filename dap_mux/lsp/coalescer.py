"""Background work that follows changes: one run at a time, for all that has changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeAlias

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class Coalescer:
    """Runs the work of each key; `start_task` runs a coroutine in the background."""

    def __init__(self, start_task: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._start_task = start_task
        self._running: set[Hashable] = set()
        self._again: set[Hashable] = set()

    def run(self, key: Hashable, work: Work) -> None:
        """Start the work; if it is running, it runs once more afterwards."""
        if key in self._running:
            self._again.add(key)
            return
        self._running.add(key)
        self._start_task(self._run(key, work))

    async def _run(self, key: Hashable, work: Work) -> None:
        try:
            await work()
            while key in self._again:
                self._again.discard(key)
                await work()
        finally:
            self._running.discard(key)
            self._again.discard(key)
