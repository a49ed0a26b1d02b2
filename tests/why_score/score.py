"""How often `why` was right, over many runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from tests.why_score.kinds import KINDS, is_healthy
from tests.why_score.results import Result

RIGHT: Final = 0.95
SECONDS: Final = 2.0
MANY: Final = 64


class Score:
    """What many runs come to."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = [result for result in results if not result.not_run]
        self.not_run = [result for result in results if result.not_run]

    @cached_property
    def faulty(self) -> Sequence[Result]:
        """Those with a fault."""
        return [result for result in self._results if not is_healthy(result.fault)]

    @cached_property
    def healthy(self) -> Sequence[Result]:
        """Those without."""
        return [result for result in self._results if is_healthy(result.fault)]

    @property
    def right(self) -> int:
        """How often cause and rank of a fault were right."""
        return sum(result.right for result in self.faulty)

    @property
    def false_alarms(self) -> int:
        """How often a healthy job was called something else."""
        return sum(result.false_alarm for result in self.healthy)

    @property
    def slowest_of_many(self) -> float:
        """The longest time with many ranks, in seconds."""
        return max((one.seconds for one in self._results if one.size == MANY), default=0.0)

    @property
    def held(self) -> bool:
        """Whether all is as promised."""
        return (
            self.right >= RIGHT * len(self.faulty)
            and not self.false_alarms
            and self.slowest_of_many <= SECONDS
        )

    def sentence(self) -> str:
        """Say it in one."""
        recognized = sum(result.right for result in self.healthy)
        share = 100 * self.right / max(1, len(self.faulty))
        return (
            f"Rank and cause are right in {self.right} of {len(self.faulty)} runs ({share:.1f} %); "
            f"{self.false_alarms} false alarms in {len(self.healthy)} runs of healthy jobs, "
            f"{recognized} of which are called healthy; "
            f"at most {self.slowest_of_many:.1f} s with {MANY} ranks."
        )

    def gaps(self) -> str:
        """Say what was not run, and why; "" if all was."""
        reasons = {f"{one.fault} ({one.not_run})" for one in self.not_run}
        return f"Not run: {', '.join(sorted(reasons))}." if reasons else ""

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return fault, expected verdicts, and right of all for each kind of job, as text."""
        return [
            (fault, kind.what, " or ".join(kind.verdicts), self._cells(fault))
            for fault, kind in KINDS.items()
        ]

    def _cells(self, fault: str) -> str:
        return " | ".join(self._cell(fault, job) for job in ("socket", "gloo", "mpi"))

    def _cell(self, fault: str, job: str) -> str:
        if job not in KINDS[fault].jobs:
            return ""
        found = [one for one in self._results if (one.fault, one.job) == (fault, job)]
        return f"{sum(one.right for one in found)}/{len(found)}" if found else "not run"
