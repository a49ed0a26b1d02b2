"""`python -m tests.fuzz [COUNT] [SEED]`: that many messages, from where the seed begins.

What it finds is cut down and printed; keep it in `tests/engine/test_fuzzed.py`. Another seed goes
on with other messages.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import resource
import sys
import time
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.fuzz.world import Said

GROWTH: Final = 64 * 1024  # kB that the process may grow by, once it has its size
BATCH: Final = 1000  # sessions


class Watch:
    """Tries sessions, and watches how long the engine takes and how much memory it keeps."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._sessions = 0
        self._size = 0
        self._started = time.monotonic()

    def attempt(self, steps: list[Said]) -> None:
        """Raise what goes wrong. The process ends once there were messages enough."""
        from tests.fuzz.drawn import cut_down, fails  # not before `guided` can instrument them
        from tests.fuzz.world import World, attempt

        try:
            attempt(steps)
        except BaseException:
            print("what it comes down to:", flush=True)
            for step in cut_down(steps, fails):
                print(f"    {step!r},", flush=True)
            raise
        self._sessions += 1
        if self._sessions % BATCH == 0 or World.fed >= self._messages:
            self._report(World.fed, World.slowest)
        if World.fed >= self._messages:
            os._exit(0)  # a fuzzer has no other end than a failure

    def _report(self, fed: int, slowest: float) -> None:
        gc.collect()
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._size = self._size or now
        print(
            f"{fed:,} messages in {self._sessions:,} sessions, "
            f"{time.monotonic() - self._started:.0f} s, {time.process_time():.0f} s of CPU, "
            f"slowest {slowest * 1000:.0f} ms, {now // 1024} MiB",
            flush=True,
        )
        assert now - self._size < GROWTH, f"grown from {self._size} to {now} kB"


def main(messages: int = 100_000, first: int = 0) -> None:
    """Feed that many messages."""
    watch = Watch(messages)
    if importlib.util.find_spec("atheris"):
        from tests.fuzz.guided import fuzz

        fuzz(watch.attempt, first)
    print("Atheris is not available for this Python and system: sessions are drawn at random")
    from tests.fuzz.drawn import session

    for seed in count(first):
        watch.attempt(session(seed))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
