"""What ends a job while it is paused: clocks of torch's process groups, and of its scheduler.

A rank tells them by `injected.timeout_probe`.
"""

from __future__ import annotations

from typing import Final

import msgspec

LONG: Final = 24 * 3600  # s that a collective may take while ranks are paused


class Collective(msgspec.Struct, frozen=True, array_like=True):
    """One that a rank has begun and not ended; s. `limit`, `age` None: torch does not tell."""

    name: str
    limit: float | None = None
    age: float | None = None

    @property
    def left(self) -> float | None:
        """Seconds until it fails."""
        return None if self.limit is None or self.age is None else self.limit - self.age


class Clocks(msgspec.Struct, frozen=True):
    """What a rank tells. `before`: the time-outs (s) that were put up just now.

    `waiting`: collectives under way; `problem`: why a time-out is not put up. `job`: SLURM's
    number, and `left` the seconds until it ends that job; `elastic`: torchrun has started it.
    """

    before: list[float] = []
    waiting: list[Collective] = []
    problem: str = ""
    job: str = ""
    left: float | None = None
    elastic: bool = False


def clocks(result: object) -> Clocks:
    """Read an answer. Raises ValueError for nonsense: ranks' bytes are hostile too."""
    return msgspec.json.decode(str(result), type=Clocks)
