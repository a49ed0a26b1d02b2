"""The cost of the watch on communication: a step of DDP, and a call of 16 bytes, in each mode."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.bench.figures import Figure, at_most, not_measured, shown
from tests.support.processes.proc_net import free_ports

PROGRAM: Final = Path(__file__).with_name("comm_program.py")
PYTHON: Final = Path.home() / ".cache/dap-mux/engines/torch-3.11/bin/python"
BOUNDS: Final = {"off": 1.05, "time": 1.05, "finite": 1.06, "hash": 1.2}
ROUNDS: Final = 12
AT_ONCE: Final = {"ddp": 4, "small": 200}


class Job:
    """Two ranks of the program, which do what rank 0 is told."""

    def __init__(self, stack: ExitStack) -> None:
        port = free_ports(1)
        there = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
        # The last one's input is closed first: it tells the other that it is over.
        _, self._first = (self._rank(stack, {**there, "RANK": rank}) for rank in ("1", "0"))

    def _rank(self, stack: ExitStack, variables: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [PYTHON, PROGRAM],
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

    CPU time of rank 0, the best of some rounds, because others use the machine too. `off` is
    compared with the job without it; two processes of one program differ by some per cent. The
    modes are compared with `off` in the same processes.
    """
    if not PYTHON.exists():
        yield not_measured("cost of --comm", "tests/launchers/install torch")
        return
    with ExitStack() as stack:
        plain, watched = Job(stack), Job(stack)
        for what in AT_ONCE:
            best: dict[str, float] = {}
            for _ in range(ROUNDS):
                for mode in ("plain", *BOUNDS):
                    took = (plain if mode == "plain" else watched).seconds(mode, what)
                    best[mode] = min(took, best.get(mode, took))
            for mode, bound in BOUNDS.items():
                if what == "ddp":
                    beside = "plain" if mode == "off" else "off"
                    name = f"DDP step of 3.2 M parameters, {mode}"
                    yield at_most(name, best[mode], best[beside], bound, beside)
                else:
                    name = f"all_reduce of 16 bytes, {mode}"
                    yield Figure(name, shown(best[mode]), f"{shown(best['plain'])} plain")
