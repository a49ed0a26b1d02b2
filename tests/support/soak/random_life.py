"""What the scenes of the soak share: chance, visitors, and a memory of what happened."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from tests.support import faults
from tests.support.processes.commands import line_of
from tests.support.soak.visitors import ConsoleVisitor, EditorVisitor, Visitor

LIMIT: Final = 60.0  # s; not a wait
MAX_CLIENTS: Final = 3
REMEMBERED: Final = 80
MARKS: Final = ("turn", "work", "inner")  # lines of the real ranks' program
LASTING: Final[tuple[Callable[[], faults.Fault], ...]] = (
    lambda: faults.Latency(0.05),
    lambda: faults.Rate(200_000),
    faults.OneByte,
    faults.Stall,
    faults.Refuse,
    faults.BlackHole,
    faults.Orphan,
)
Action: TypeAlias = Callable[[], Awaitable[None]]


@dataclass
class RandomLife:
    """The same `seed` draws the same actions, as far as the world does its part."""

    seed: int
    told: deque[str] = field(init=False, default_factory=lambda: deque(maxlen=REMEMBERED))
    counts: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self._chance = Random(self.seed)
        self._began = time.monotonic()
        self._visitors: list[Visitor] = []
        self._names = 0

    @property
    def passed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def _tell(self, what: str, text: str) -> None:
        self.counts[what] += 1
        self.told.append(f"{self.passed:8.2f} s  {what}: {text}")

    def _draw(self, actions: Sequence[tuple[Action, int]]) -> Action:
        """One of them, by their weights."""
        ((drawn, _),) = self._chance.choices(actions, [weight for _, weight in actions])
        return drawn

    async def _visit(
        self,
        port: int,
        path: str,
        lines: Sequence[int],
        console: type[ConsoleVisitor] = ConsoleVisitor,
    ) -> Visitor:
        """Let somebody join: an editor, or less often a console."""
        self._names += 1
        kind = self._chance.choice((EditorVisitor, EditorVisitor, console))
        visitor = await kind.join(str(self._names), port, path, lines, self._chance)
        self._visitors.append(visitor)
        self._tell("join", visitor.name)
        return visitor

    async def _somebody_acts(self) -> None:
        if visitor := self._somebody():
            self._tell("act", f"{visitor.name} {visitor.act(self._chance)}")

    def _somebody(self) -> Visitor | None:
        return self._chance.choice(self._visitors) if self._visitors else None

    def _forget(self, visitor: Visitor) -> None:
        self._visitors.remove(visitor)
        self.counts["stop"] += visitor.stops


def marked_lines(script: str) -> list[int]:
    """The numbers of the lines where breakpoints are set in a script."""
    return [line_of(script, mark) for mark in MARKS]
