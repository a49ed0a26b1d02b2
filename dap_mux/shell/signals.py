"""Signals that end the session, kept until they are waited for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from types import TracebackType


class Signals:
    """Receives signals as long as the block lasts.

    As anyio's receiver does, which an adapter's start has not imported yet.
    """

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self._signals = signals
        self._arrived: asyncio.Queue[signal.Signals] = asyncio.Queue()

    def __enter__(self) -> Signals:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self._arrived.put_nowait, number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.remove_signal_handler(number)

    async def next(self) -> signal.Signals:
        """Wait for one, or return the first that has arrived since the last call."""
        return await self._arrived.get()
