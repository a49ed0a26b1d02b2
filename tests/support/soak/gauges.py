"""What a process holds, read again and again, and the judge of whether that grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeAlias

Sample: TypeAlias = Mapping[str, float]
"""Gauges by name: `rss` in KiB, the others are counts."""
PARTS: Final = 3


@dataclass(frozen=True)
class Bound:
    """How far a level may rise: by so many units, and by this share of the level at first."""

    units: float = 0.0
    share: float = 0.0

    def allows(self, first: float, last: float) -> bool:
        """Whether `last` is no more than this above `first`."""
        return last <= first * (1 + self.share) + self.units


def grown(samples: Sequence[Sample], bounds: Mapping[str, Bound]) -> list[str]:
    """Complain of each gauge whose median in the last third is beyond its bound above the first's.

    Fewer than three samples show nothing, which is a complaint, too.
    """
    third = len(samples) // PARTS
    if not third:
        return [f"{len(samples)} samples are too few to judge"]
    complaints = []
    for name, bound in bounds.items():
        first = median(sample[name] for sample in samples[:third])
        last = median(sample[name] for sample in samples[-third:])
        if not bound.allows(first, last):
            complaints.append(f"{name} has grown from {first:g} to {last:g}")
    return complaints


def not_back(before: Sample, after: Sample, bounds: Mapping[str, Bound]) -> list[str]:
    """Complain of each gauge that is beyond its bound above what it was before."""
    return [
        f"{name} was {before[name]:g} and is {after[name]:g}"
        for name, bound in bounds.items()
        if not bound.allows(before[name], after[name])
    ]


def table(samples: Sequence[Sample]) -> str:
    """Return the samples as lines, for a person to read."""
    if not samples:
        return "no samples"
    rows = [list(samples[0]), *([f"{value:g}" for value in one.values()] for one in samples)]
    return "\n".join(" ".join(f"{cell:>10}" for cell in row) for row in rows)


# What the session of the scene `mixed` may hold, and how far that may grow.


POOL: Final = 8  # threads, started when there is work for them
BASELINE: Final = ("files", "tasks", "handles", "deadlines", "timers", "links", "clients", "errors")
BASELINE_BOUNDS: Final = dict.fromkeys(BASELINE, Bound())
# At rest: nothing is left of anybody, and what is kept for errors and for speed does not grow.
AT_REST: Final = {
    **BASELINE_BOUNDS,
    "threads": Bound(units=POOL),
    "objects": Bound(units=2_000, share=0.02),
    "rss": Bound(units=6 * 1024, share=0.05),
}
# Meanwhile: how many clients are there, and how many ranks are stopped, is chance.
MEANWHILE: Final = {
    "files": Bound(units=20),
    "threads": Bound(units=POOL),
    "tasks": Bound(units=40),
    "deadlines": Bound(units=200),
    "timers": Bound(units=200),
    "handles": Bound(units=1_000, share=1.0),
    "objects": Bound(units=40_000, share=0.3),
    "rss": Bound(units=12 * 1024, share=0.15),
}
