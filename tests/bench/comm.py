"""The cost of the watch on communication: a step of DDP, and a call of 16 bytes, in each mode."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.figures import Figure, at_most, not_measured, shown
from tests.support.processes.proc_net import free_ports

PROGRAM: Final = Path(__file__).with_name("comm_program.py")
PYTHON: Final = Path.home() / ".cache/dap-mux/engines/torch-3.11/bin/python"
BOUNDS: Final = {"off": 1.05, "time": 1.05, "finite": 1.06, "hash": 1.2, "taken": 1.25}
ROUNDS: Final = 12
AT_ONCE: Final = {"ddp": 4, "small": 200}


class Job:
    """Two ranks of the program, which do what rank 0 is told."""

    def __init__(self, stack: ExitStack) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-take-"))
        self._file = f"{folder}/0.rank"
        port = free_ports(1)
        there = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
        # The last one's input is closed first: it tells the other that it is over.
        _, self._first = (self._rank(stack, {**there, "RANK": rank}) for rank in ("1", "0"))

    def _rank(self, stack: ExitStack, variables: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [PYTHON, PROGRAM, self._file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **variables, "OMP_NUM_THREADS": "1"},
            text=True,
        )
        stack.callback(process.communicate, timeout=60)
        return process

    def seconds(self, mode: str, what: str) -> float:
        """Of rank 0's CPU for one."""
        assert self._first.stdin is not None
        assert self._first.stdout is not None
        self._first.stdin.write(f"{mode} {what} {AT_ONCE[what]}\n")
        self._first.stdin.flush()
        return float(self._first.stdout.readline())


def comm() -> Iterator[Figure]:
    """What `--comm` costs in each mode: two jobs of two ranks in turns, one without dap-mux.

    CPU time of rank 0, in turns; the median of the rounds' ratios counts, because others use the
    machine too. `off` is compared with the job without it; two processes of one program differ by
    some per cent. The modes are compared with `off` in the same processes.
    """
    if not PYTHON.exists():
        yield not_measured("cost of --comm", "tests/launchers/install torch")
        return
    with ExitStack() as stack:
        plain, watched = Job(stack), Job(stack)
        for what in AT_ONCE:
            took: dict[str, list[float]] = {mode: [] for mode in ("plain", *BOUNDS)}
            for _ in range(ROUNDS):
                for mode, seconds in took.items():
                    seconds.append((plain if mode == "plain" else watched).seconds(mode, what))
            for mode, bound in BOUNDS.items():
                if what == "ddp":
                    beside = "plain" if mode == "off" else "off"
                    ratios = map(truediv, took[mode], took[beside])
                    name, baseline = f"DDP step of 3.2 M parameters, {mode}", median(took[beside])
                    yield at_most(name, median(ratios) * baseline, baseline, bound, beside)
                else:
                    name = f"all_reduce of 16 bytes, {mode}"
                    yield Figure(name, shown(min(took[mode])), f"{shown(min(took['plain']))} plain")
