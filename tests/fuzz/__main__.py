"""`python -m tests.fuzz [COUNT] [SEED]`: that many messages, from where the seed begins.

What it finds is cut down and printed; keep it in `tests/engine/test_fuzzed.py`. Another seed goes
on with other messages.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from typing import Final

from tests.fuzz.drawn import cut_down, fails, session
from tests.fuzz.world import World

GROWTH: Final = 64 * 1024  # kB that the process may grow by, once it has its size
BATCH: Final = 1000  # sessions


def fuzz(count: int, first: int) -> None:
    """Feed `count` messages; raise what goes wrong."""
    number, size, started = first, 0, time.monotonic()
    while World.fed < count:
        for seed in range(number, number + BATCH):
            _try(seed)
        number += BATCH
        gc.collect()
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = size or now
        print(
            f"{World.fed:,} messages, {time.monotonic() - started:.0f} s, next seed {number}, "
            f"slowest {World.slowest * 1000:.0f} ms, {now // 1024} MiB",
            flush=True,
        )
        assert now - size < GROWTH, f"grown from {size} to {now} kB"


def _try(seed: int) -> None:
    steps = session(seed)
    try:
        World().run(steps)
    except BaseException:
        print(f"seed {seed}; what it comes down to:", flush=True)
        for step in cut_down(steps, fails):
            print(f"    {step!r},")
        raise


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    fuzz(numbers[0] if numbers else 100_000, numbers[1] if len(numbers) > 1 else 0)
