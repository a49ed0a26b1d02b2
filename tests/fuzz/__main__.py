"""`python -m tests.fuzz [COUNT] [SEED]`: that many messages, from where the seed begins.

What it finds is shrunk and printed; keep it in `tests/engine/test_fuzzed.py`. Another seed goes on
with other messages.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from typing import Final

from hypothesis import HealthCheck, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.fuzz.strategies import STEPS
from tests.fuzz.world import Said, World

GROWTH: Final = 64 * 1024  # kB that the process may grow by, once it has its size
BATCH: Final = 100  # sessions


def fuzz(count: int, first: int) -> None:
    """Feed `count` messages; raise what goes wrong."""
    batch, size, started = first, 0, time.monotonic()
    while World.fed < count:
        _batch(batch)
        batch += 1
        gc.collect()
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = size or now
        print(
            f"{World.fed:,} messages, {time.monotonic() - started:.0f} s, next seed {batch}, "
            f"slowest {World.slowest * 1000:.0f} ms, {now // 1024} MiB",
            flush=True,
        )
        assert now - size < GROWTH, f"grown from {size} to {now} kB"


def _batch(number: int) -> None:
    @seed(number)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=DirectoryBasedExampleDatabase(".hypothesis/fuzz"),
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(steps=STEPS)
    def session(steps: list[Said]) -> None:
        World().run(steps)

    session()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    fuzz(numbers[0] if numbers else 100_000, numbers[1] if len(numbers) > 1 else 0)
