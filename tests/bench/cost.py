"""What it costs a rank to be debuggable, and to be debugged: pure Python, in each Python.

The rank runs under the in-rank agent, beside the same program in a plain Python of the same
version; both run a loop of calls in turns, and the CPU time of their main thread counts. Several
pairs are started, for two processes of one program differ by some per cent. docs/ranks.md has the
figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.attaching import attach
from tests.bench.figures import Figure, at_most, not_measured, shown
from tests.bench.wire import Wire
from tests.support.processes import pythons

BOUND: Final = 1.05
PAIRS: Final = 3
ROUNDS: Final = 15
LOOP: Final = 200_000
HOT_LOOP: Final = 5_000
HOT_ROUNDS: Final = 5
NEVER: Final = "number < 0"
PROGRAM: Final = Path(__file__).with_name("cost_program.py")
_ROOT: Final = Path(__file__).parents[2]
_LINES: Final = PROGRAM.read_text("utf-8").splitlines()
_HOT: Final = next(n for n, line in enumerate(_LINES, 1) if line.endswith("# hot"))


class Process:
    """A running copy of the program."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [*command, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )

    def seconds(self, rounds: int) -> float:
        """Of CPU for each round of its loop."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{rounds}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline()) / rounds

    def end(self) -> None:
        """Let it end."""
        self._process.communicate(timeout=60)


@dataclass
class Costs:
    """Seconds for each round of the loop, by what goes on."""

    plain: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    attached: list[float] = field(default_factory=list)
    condition: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)


def run() -> Iterator[Figure]:
    """Measure in every Python that is here."""
    try:
        pythons.install()
    except (OSError, subprocess.CalledProcessError) as error:
        yield not_measured("cost of being debuggable", str(error))
        return
    for version in pythons.VERSIONS:
        python = pythons.python_with(pythons.NEWEST, version)
        if python is None:
            yield Figure(f"Python {version}", "not measured", "none on this machine")
        else:
            yield from _figures(version, _measured(python))


def _figures(version: str, costs: Costs) -> Iterator[Figure]:
    plain = min(costs.plain)
    judged = {"nobody attached": costs.alone, "after detaching": costs.left}
    for what, times in judged.items():
        yield at_most(f"Python {version}, {what}", min(times), plain, BOUND, "plain")
    told = {"attached": costs.attached, "a condition in a hot line": costs.condition}
    for what, times in told.items():
        ratio = f"{min(times) / plain:.1f} x"
        name = f"Python {version}, {what}"
        yield Figure(name, shown(min(times)), f"{shown(plain)} plain", ratio)


def _measured(python: Path) -> Costs:
    costs = Costs()
    for _ in range(PAIRS):
        with _pair(python) as (plain, rank, port):
            for _ in range(ROUNDS):
                costs.plain.append(plain.seconds(LOOP))
                costs.alone.append(rank.seconds(LOOP))
            with Wire(port) as client:
                attach(client, str(PROGRAM))
                costs.attached += [rank.seconds(LOOP // 4) for _ in range(HOT_ROUNDS)]
                hot = {"line": _HOT, "condition": NEVER}
                source = {"path": str(PROGRAM)}
                client.ask("setBreakpoints", {"source": source, "breakpoints": [hot]})
                costs.condition += [rank.seconds(HOT_LOOP) for _ in range(HOT_ROUNDS)]
                client.ask("disconnect")
            costs.left += [rank.seconds(LOOP) for _ in range(ROUNDS)]
    return costs


@contextmanager
def _pair(python: Path) -> Iterator[tuple[Process, Process, int]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        environment = {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "PYTHONHASHSEED": "0",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        ready = Path(folder) / "ready.json"
        options = ["--no-wait", "--port", "0", "--ready-file", str(ready)]
        agent = [str(python), "-m", "dap_mux.rank", *options]
        both = [Process(command, environment) for command in ([str(python)], agent)]
        for process in both:
            stack.callback(process.end)
            process.seconds(LOOP)  # to warm up; the rank listens by then
        yield both[0], both[1], int(json.loads(ready.read_text("utf-8"))["port"])
