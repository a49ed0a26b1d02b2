"""The cost of the agent in a rank, measured in each Python."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.figures import Figure, at_most, not_measured, shown
from tests.bench.wire import Wire, attach
from tests.support.processes import pythons

BOUND: Final = 1.05
PAIRS: Final = 7
ROUNDS: Final = 40
LOOP: Final = 50_000
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


class Pair(NamedTuple):
    """Seconds for a round of the loop."""

    rank: float
    plain: float

    @property
    def ratio(self) -> float:
        """How many times as long the rank takes."""
        return self.rank / self.plain


@dataclass
class Costs:
    """Seconds for each round of the loop, of each pair: in the rank and in the plain process."""

    alone: list[Pair] = field(default_factory=list)
    attached: list[Pair] = field(default_factory=list)
    condition: list[Pair] = field(default_factory=list)
    left: list[Pair] = field(default_factory=list)


def cost() -> Iterator[Figure]:
    """What it costs a rank to be debuggable, and to be debugged: pure Python, in each Python.

    The rank runs under the in-rank agent, beside the same program in a plain Python of the same
    version; both run a loop of calls in turns, and the CPU time of their main thread counts: the
    best of many short rounds, because others use the machine too. Two processes of one program
    differ by some per cent, so several pairs are started, and the pair in the middle is judged.
    docs/ranks.md has the figures.
    """
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
    for what, pairs in {"nobody attached": costs.alone, "after detaching": costs.left}.items():
        rank, plain = _middle(pairs)
        yield at_most(f"Python {version}, {what}", rank, plain, BOUND, "plain")
    told = {"attached": costs.attached, "a condition in a hot line": costs.condition}
    for what, pairs in told.items():
        pair = _middle(pairs)
        name = f"Python {version}, {what}"
        yield Figure(name, shown(pair.rank), f"{shown(pair.plain)} plain", f"{pair.ratio:.1f} x")


def _middle(pairs: list[Pair]) -> Pair:
    return sorted(pairs, key=lambda pair: pair.ratio)[len(pairs) // 2]


def _measured(python: Path) -> Costs:
    costs = Costs()
    for _ in range(PAIRS):
        with _pair(python) as (plain, rank, port):
            costs.alone.append(_in_turns(rank, plain, LOOP, ROUNDS))
            with Wire(port) as client:
                attach(client, str(PROGRAM))
                costs.attached.append(_in_turns(rank, plain, LOOP, HOT_ROUNDS))
                hot = {"line": _HOT, "condition": NEVER}
                source = {"path": str(PROGRAM)}
                client.ask("setBreakpoints", {"source": source, "breakpoints": [hot]})
                costs.condition.append(_in_turns(rank, plain, HOT_LOOP, HOT_ROUNDS))
                client.ask("disconnect")
            costs.left.append(_in_turns(rank, plain, LOOP, ROUNDS))
    return costs


def _in_turns(rank: Process, plain: Process, loop: int, rounds: int) -> Pair:
    times = [Pair(rank.seconds(loop), plain.seconds(loop)) for _ in range(rounds)]
    return Pair(min(each.rank for each in times), min(each.plain for each in times))


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
