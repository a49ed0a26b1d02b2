"""Time limits that can end a paused job: those of torch's collectives and of the scheduler.

A rank reports them by `injected.timeout_probe`.
"""

from __future__ import annotations

from typing import Final

import msgspec

RAISED_TIMEOUT_S: Final = 24 * 3600  # of a collective while ranks are stopped


class Collective(msgspec.Struct, frozen=True, array_like=True):
    """A collective under way in a rank, in seconds. `limit`, `age` None: unknown to torch."""

    name: str
    limit: float | None = None
    age: float | None = None

    @property
    def left(self) -> float | None:
        """Seconds until it fails."""
        return None if self.limit is None or self.age is None else self.limit - self.age


class TimeoutReport(msgspec.Struct, frozen=True):
    """A rank's report. `before`: the old values (s) of the time-outs that were raised just now.

    `waiting`: collectives under way; `problem`: why a time-out cannot be raised. `job`: SLURM's
    job id, `left`: the seconds until SLURM ends that job; `elastic`: torchrun has started it.
    """

    before: list[float] = []
    waiting: list[Collective] = []
    problem: str = ""
    job: str = ""
    left: float | None = None
    elastic: bool = False


def read_report(result: object) -> TimeoutReport:
    """Decode a report. Raises ValueError if it is malformed: ranks are not trusted."""
    return msgspec.json.decode(str(result), type=TimeoutReport)
