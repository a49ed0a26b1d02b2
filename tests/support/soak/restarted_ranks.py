"""Real ranks that are killed, and started again as other processes."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

from tests.support.processes.ranks import Rank, Style, debugpy_ranks

STYLES: Final[tuple[Style, ...]] = ("module", "agent")


class RestartedRanks:
    """Ranks of one program; each keeps its number over its processes, and gets another port.

    They take turns in how they listen: as debugpy does by itself, and under our agent.
    """

    def __init__(
        self, stack: AsyncExitStack, size: int, first: int, script: str, arguments: Sequence[str]
    ) -> None:
        self._stack = stack
        self._size = size
        self._first = first
        self._script = script
        self._arguments = arguments
        self.ranks: dict[int, Rank] = {}

    async def start(self, place: int) -> int:
        """Start a process; return its port once it is ready. `place`: its number among these."""
        env: Mapping[str, str] = {"RANK": str(self._first + place), "WORLD_SIZE": str(self._size)}
        (self.ranks[place],) = await self._stack.enter_async_context(
            debugpy_ranks(
                1,
                self._script,
                wait=False,
                env=env,
                arguments=self._arguments,
                style=STYLES[place % len(STYLES)],
            )
        )
        return self.ranks[place].port

    async def kill(self, place: int) -> None:
        """End its process, and wait for that."""
        rank = self.ranks[place]
        assert rank.running, f"rank {self._first + place} has ended by itself: {rank.output}"
        rank.kill(signal.SIGKILL)
        await rank.ended()
