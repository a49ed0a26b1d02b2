"""Starts children in the way named first, once the file named second exists; 0 if all did well."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

WORK = "import sys; sys.exit(7)"


def seven() -> None:
    """What a child does: some lines of Python, and an exit code that only it can give."""
    sys.exit(7)


def forked() -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(sum([3, 4]))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def spawned() -> int | None:
    child = multiprocessing.get_context("spawn").Process(target=seven)
    child.start()
    child.join()
    return child.exitcode


def run() -> int:
    return subprocess.run([sys.executable, "-c", WORK], check=False).returncode


if __name__ == "__main__":
    start = {"fork": forked, "spawn": spawned, "subprocess": run}[sys.argv[1]]
    told = Path(sys.argv[2])
    while not told.exists():
        time.sleep(0.005)
    code = start()  # start
    print("child ended with", code)
    sys.exit(0 if code == 7 else 1)
