"""Pauses at random what a test run has started, so that what holds by chance only shows.

`pytest -n 2 --shake 2 tests/real`: at any time about two processes of the run, or single threads of
them, stand still for up to a second, pytest's workers among them. A test that fails then has raced,
or is late for a promise in seconds (those are marked `alone`, and are not for this).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.faults.thread_suspender import hold

MARK: Final = "DAP_MUX_SHAKEN"  # in the environment of every process of the run
PAUSES: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0)  # s
LOOK_AGAIN: Final = 0.15  # s between two looks at what runs
_REPOSITORY: Final = Path(__file__).resolve().parents[3]


@contextmanager
def shaken(at_once: int) -> Iterator[None]:
    """Pause so many processes of ours at a time, and none of them for ever, until we leave."""
    others = {**os.environ, MARK: ""}
    os.environ[MARK] = mark = uuid.uuid4().hex
    words = [sys.executable, "-m", "tests.support.faults.shaking", mark, str(at_once)]
    shaker = subprocess.Popen(words, cwd=_REPOSITORY, env=others, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        del os.environ[MARK]
        assert shaker.stdin
        shaker.stdin.close()  # its sign to end, which our death would give it, too
        shaker.wait()


class Shaker:
    """The process beside the run."""

    def __init__(self, mark: str) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self._found: list[int] = []
        self._over = threading.Event()

    def run(self, at_once: int) -> None:
        """Shake until standard input ends."""
        lanes = [threading.Thread(target=self._lane) for _ in range(at_once)]
        looking = threading.Thread(target=self._look)
        for thread in (*lanes, looking):
            thread.start()
        sys.stdin.read()
        self._over.set()
        for thread in (*lanes, looking):
            thread.join()  # whoever stands still goes on first

    def _lane(self) -> None:
        while not self._over.wait(random.uniform(0.001, 0.05)):
            if found := self._found:
                pause = random.choice((self._pause, self._pause_a_thread))
                pause(random.choice(found), random.choice(PAUSES))

    @staticmethod
    def _pause(pid: int, seconds: float) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(seconds)
            finally:
                os.kill(pid, signal.SIGCONT)

    @staticmethod
    def _pause_a_thread(pid: int, seconds: float) -> None:
        with suppress(OSError, IndexError):
            threads = list(Path(f"/proc/{pid}/task").iterdir())
            hold(int(random.choice(threads).name), seconds)

    def _look(self) -> None:
        while not self._over.wait(LOOK_AGAIN):
            pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
            self._found = [pid for pid in pids if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        """Whether it has our mark, and is no process that a test has stopped."""
        with suppress(OSError):
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            return self._mark in environ and state not in "TZ"
        return False


if __name__ == "__main__":
    Shaker(sys.argv[1]).run(int(sys.argv[2]))
