"""The cost of the watch on communication: a step of DDP, and a call of 16 bytes, in each mode."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.figures import Figure, at_most, not_measured, shown
from tests.support.processes.proc_net import free_ports

PROGRAM: Final = Path(__file__).with_name("comm_program.py")
PYTHON: Final = Path.home() / ".cache/dap-mux/engines/torch-3.11/bin/python"
NO_BOUND: Final = inf
"""Told, not judged: the large batch has the bound that was asked for, 1.1."""
BOUNDS: Final = {
    "off": 1.05,
    "time": 1.05,
    "finite": 1.06,
    "hash": 1.2,
    "taken": NO_BOUND,
    "beside": 1.05,
}
HOME: Final = Path(__file__).with_name("take_program.py")
STEP: Final = re.compile(r"\bstep 0 (\S+)")
SIZE: Final = re.compile(r"is taken at (\d+) bytes a step")
ROUNDS: Final = 12
AT_ONCE: Final = {"ddp": 4, "large": 2, "small": 200}
STEPS: Final = {"ddp": "DDP step of 3.2 M parameters", "large": "DDP step, 512 samples"}
OF_LARGE: Final = {"off": 1.05, "time": 1.05, "finite": 1.05, "hash": 1.1, "taken": 1.1}


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


def taken_home() -> Iterator[Figure]:
    """How much one rank of two receives in a step, and the CPU time of a step in its replay."""
    with tempfile.TemporaryDirectory(prefix="bench-take-") as folder:
        file = f"{folder}/0.rank"
        job = ("torchrun", "--standalone", "--nproc-per-node", "2", HOME)
        taken = _does("run", "--take", "0", "--to", file, "--no-wait", "--", *job)
        replayed = _does("replay", file, "--no-wait", "--", HOME)
    (size,) = SIZE.findall(taken)
    yield Figure("received in a step of 3.2 M parameters", f"{int(size) / 1e6:.1f} MB")
    (there,), (home,) = STEP.findall(taken), STEP.findall(replayed)
    ratio = f"{float(home) / float(there):.2f} x"
    yield Figure("a step, replayed", shown(float(home)), f"{shown(float(there))} taken", ratio)


def _does(*words: str | Path) -> str:
    """Run `dap-mux WORDS` to its end; return what it has printed."""
    path = f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "dap_mux", *words],
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def comm() -> Iterator[Figure]:
    """What `--comm` and `--take` cost: two jobs of two ranks in turns, one without dap-mux.

    CPU time of rank 0, in turns; the median of the rounds' ratios counts, because others use the
    machine too. `off` is compared with the job without it; two processes of one program differ by
    some per cent. The modes are compared with `off` in the same processes. What a step of gradients
    costs does not depend on the batch: the `large` one has 512 samples, the other 64.
    """
    if not PYTHON.exists():
        yield not_measured("cost of --comm", "tests/launchers/install torch")
        return
    yield from taken_home()
    with ExitStack() as stack:
        plain, watched = Job(stack), Job(stack)
        for what in AT_ONCE:
            bounds = OF_LARGE if what == "large" else BOUNDS
            took: dict[str, list[float]] = {mode: [] for mode in ("plain", *bounds)}
            for _ in range(ROUNDS):
                for mode, seconds in took.items():
                    seconds.append((plain if mode == "plain" else watched).seconds(mode, what))
            for mode, bound in bounds.items():
                if what in STEPS:
                    beside = "plain" if mode == "off" else "off"
                    ratios = map(truediv, took[mode], took[beside])
                    name, baseline = f"{STEPS[what]}, {mode}", median(took[beside])
                    one = at_most(name, median(ratios) * baseline, baseline, bound, beside)
                    yield one if bound < NO_BOUND else replace(one, bound="", held=None)
                else:
                    name = f"all_reduce of 16 bytes, {mode}"
                    yield Figure(name, shown(min(took[mode])), f"{shown(min(took['plain']))} plain")
