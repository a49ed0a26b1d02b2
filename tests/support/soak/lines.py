"""Ranks behind lines that are cut every few seconds, and how long each of them is away."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Final

from dap_mux.engine.state.phases import Phase
from tests.real.driving import Driver
from tests.support import faults
from tests.support.faults import FaultProxy
from tests.support.processes.waiting import until
from tests.support.session import Session
from tests.support.soak.story import Story

LOOK_EVERY_S: Final = 0.02
BETWEEN_CUTS_S: Final = (0.5, 5.0)
CUT_LASTS_S: Final = (0.0, 2.0)
BACK_WITHIN_S: Final = 60.0  # at the end, when no line is cut any more
REMEMBERED: Final = 100
LONG_S: Final = 8.0  # an absence that the report explains
BUCKETS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0)
CUTS: Final[tuple[Callable[[Random], faults.Fault], ...]] = (
    lambda chance: faults.Cut(chance.randint(0, 400)),
    lambda chance: faults.Reset(),
    lambda chance: faults.Refuse(),
    lambda chance: faults.Orphan(),
    lambda chance: faults.BlackHole(),
    lambda chance: faults.Stall(),
)
CONTROLS: Final = ("pause", "continue", "next")


@dataclass
class LineSoak:
    """A session over ranks behind `tunnels`, which are cut at any time, and one client of it."""

    seed: int
    running: Session
    tunnels: Sequence[FaultProxy]
    driver: Driver
    away: Mapping[int, list[float]] = field(init=False)
    cuts: Counter[str] = field(default_factory=Counter)
    told: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def __post_init__(self) -> None:
        self.away = {number: [] for number in range(len(self.tunnels))}
        self._began = time.monotonic()
        self._since: dict[int, float] = {}
        self._whole_since: dict[int, float] = {}
        self._whole: dict[int, float] = {}
        self._longest_whole = 0.0
        ranks, engine = self.running.engine.core.ranks, self.running.engine
        self._stories = [Story(ranks["job", number], self._now) for number in self.away]
        engine.observers += [story.saw for story in self._stories]
        self._long: list[str] = []

    async def run(self, seconds: float) -> None:
        """Cut lines for so long; then leave them alone until every rank is back."""
        others = [asyncio.create_task(self._watch()), asyncio.create_task(self._use())]
        try:
            await asyncio.gather(*(self._cut_line(number, seconds) for number in self.away))
            with contextlib.suppress(AssertionError):  # the report says who is not
                await until(lambda: not self._since, within=BACK_WITHIN_S, what="all are back")
        finally:
            for task in others:
                task.cancel()
            for number in list(self._since):
                self._ends(number, "is not back")

    @property
    def longest(self) -> float:
        """How long the rank was away that was away longest, in seconds."""
        return max(max(times, default=0.0) for times in self.away.values())

    def report(self) -> str:
        """How long each rank was away at most, and how often how long."""
        began = f"began at {self._began:.3f} of the monotonic clock"
        lines = [f"seed {self.seed}; cuts: {dict(self.cuts)}; {began}"]
        for number, times in self.away.items():
            rank = self.running.engine.core.ranks["job", number]
            lines.append(
                f"rank {number}: away {len(times)} times, at most {max(times, default=0):.1f} s; "
                f"now {rank.phase.label} {rank.reason}"
            )
        whole = f"{self._longest_whole:.1f} s"
        lines.append(f"no line was whole for more than {whole} while its rank was away")
        return "\n".join([*lines, *histogram(chain(*self.away.values())), *self._long])

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _tell(self, number: int, text: str) -> None:
        self.told.append(f"{self._now():8.2f} s  rank {number}: {text}")
        self._stories[number].note(text)

    def _ends(self, number: int, how: str) -> None:
        """An absence is over, or the soak is."""
        self._note_whole(number)
        since, whole = self._since.pop(number), self._whole.pop(number, 0.0)
        seconds = time.monotonic() - since
        self.away[number].append(seconds)
        self._longest_whole = max(self._longest_whole, whole)
        self._tell(number, f"{how} after {seconds:.1f} s")
        if seconds > LONG_S:
            line = f"its line whole for at most {whole:.1f} s on end"
            self._long.append(f"rank {number}, away for {seconds:.1f} s, {line}:")
            self._long += self._stories[number].since(since - self._began)

    def _note_whole(self, number: int) -> None:
        """A line is cut, or its rank is back: how long could the rank have been reached?"""
        if number in self._since and number in self._whole_since:
            began = max(self._since[number], self._whole_since[number])
            self._whole[number] = max(self._whole.get(number, 0.0), time.monotonic() - began)

    async def _cut_line(self, number: int, seconds: float) -> None:
        chance, tunnel = Random(f"{self.seed} {number}"), self.tunnels[number]
        while time.monotonic() - self._began < seconds:
            await asyncio.sleep(chance.uniform(*BETWEEN_CUTS_S))
            fault = chance.choice(CUTS)(chance)
            name, phase = type(fault).__name__, self._phase(number)
            self._tell(number, f"{name} while {phase.label}")
            self._note_whole(number)
            self._whole_since.pop(number, None)
            self.cuts[name] += 1
            if isinstance(fault, faults.Cut):
                tunnel.down.switch(fault)
            else:
                await tunnel.fail(fault)
            await asyncio.sleep(chance.uniform(*CUT_LASTS_S))
            await tunnel.heal()
            self._tell(number, "healed")
            self._whole_since[number] = time.monotonic()

    async def _use(self) -> None:
        """A client evaluates, stops and steps meanwhile."""
        chance = Random(self.seed)
        while True:
            await asyncio.sleep(chance.expovariate(1.25 * len(self.tunnels)))
            row = self.driver.row(chance.randrange(len(self.tunnels)))
            if chance.random() < 0.3:
                self.driver.client.send(chance.choice(CONTROLS), {"threadId": row})
            else:
                self.driver.client.send("evaluate", {"expression": "1 + 1", "context": "repl"})

    async def _watch(self) -> None:
        while True:
            now = time.monotonic()
            for number in self.away:
                if self._phase(number) is not Phase.LIVE:
                    self._since.setdefault(number, now)
                elif number in self._since:
                    self._ends(number, "is back")
            await asyncio.sleep(LOOK_EVERY_S)

    def _phase(self, number: int) -> Phase:
        return self.running.engine.core.ranks["job", number].phase


def histogram(times: Iterable[float]) -> list[str]:
    """One line for each bucket of seconds."""
    counts = Counter(next((b for b in BUCKETS_S if one <= b), float("inf")) for one in times)
    most = max(counts.values(), default=1)
    return [
        f"  <= {bucket:4g} s {counts[bucket]:6} {'#' * round(50 * counts[bucket] / most)}"
        for bucket in (*BUCKETS_S, float("inf"))
    ]
