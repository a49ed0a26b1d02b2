"""The same 16 stopped functions twice: as actors of Monarch, and as ranks under debugpy.

Monarch lives in a virtual environment of its own below `.cache`, made when it is first needed: it
is no dependency of ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from tests.bench.figures import Figure, at_most, not_measured
from tests.bench.processes import Job, agents, consoles
from tests.bench.prompts import Manner, Prompt, all_moved, answered_in
from tests.support.processes.proc_net import free_ports

HOSTS, GPUS = 4, 4
COUNT: Final = HOSTS * GPUS
PACKAGE: Final = "torchmonarch==0.7.0"
_VENV: Final = Path(__file__).parents[2] / ".cache" / "monarch"
_READY: Final = ".installed"  # a half-made environment has none
_LAST_LINES: Final = 2
_END: Final = 10.0  # s
ROUNDS: Final = 60
WARM_UP: Final = 5
ATTACHED: Final = 13  # the rank whose prompt is taken, as on Monarch's page
REST: Final = 0.1  # s in which what a turn has left behind comes to rest: its ranks go on writing
MOVE_BOUND, LIST_BOUND, EXPRESSION_BOUND = 0.7, 0.7, 0.5
EXPRESSION: Final = "number + 1"
OURS: Final = Manner(
    "dap-mux",
    prompt=rb"dap-mux> ",
    listed=rb"(?:\+|no stopped ranks)\n\d+ [^|\n]*\ndap-mux> ",
    attached=rb"\(Pdb 13\) ",
    cast="cast ranks(:) {}",
    attach=f"attach {ATTACHED}",
)
THEIRS: Final = Manner(
    "monarch",
    prompt=rb"monarch_dbg> ",
    listed=rb"\+\nmonarch_dbg> ",
    attached=rb"\(Pdb\) ",
    cast="cast debugee ranks(:) {}",
    attach=f"attach debugee {ATTACHED}",
)

_WORK: Final = """\
def step(number):
    loss = number * 0.5
    return loss


def work():
    number = 0
    breakpoint()
    while True:
        number += 1
        loss = step(number)
        total = loss + number
"""
_RANK: Final = """\
from work import work

work()
"""
_ACTORS: Final = """\
from monarch.actor import Actor, endpoint
from work import work


class Debugee(Actor):
    @endpoint
    def to_debug(self) -> None:
        work()
"""
_CONTROLLER: Final = f"""\
import sys

from actors import Debugee
from monarch.actor import this_host

if __name__ == "__main__":
    mesh = this_host().spawn_procs({{"hosts": {HOSTS}, "gpus": {GPUS}}})
    called = mesh.spawn("debugee", Debugee).to_debug.call()
    sys.stdin.read()
"""


def monarch() -> Iterator[Figure]:
    """Beside Monarch's own debugger: 16 actors there, 16 ranks here, driven by the same keys.

    Both are typed at through their own door for `nc`: Monarch's `monarch debug` runs `nc` to it,
    ours is `dap-mux console --serve`. They take turns, line by line, so that what else runs on the
    machine burdens both. Ours has two more hops, console and session.

    An actor is one process, and so is a rank of `dap-mux run`.
    """
    try:
        python = monarch_python()
    except NoMonarchError as error:
        yield not_measured("beside Monarch's debugger", str(error))
        return
    with ExitStack() as stack:
        port = stack.enter_context(actors(python))
        job = stack.enter_context(ranks())
        served = stack.enter_context(consoles(job.session))
        theirs = stack.enter_context(Prompt(port, THEIRS))
        ours = stack.enter_context(Prompt(served, OURS))
        for prompt in (ours, theirs):
            while len(prompt.places()) < COUNT:
                pass
        yield from _compare(ours, theirs)


def _compare(ours: Prompt, theirs: Prompt) -> Iterator[Figure]:
    name = theirs.manner.name
    moved = f"cast n to {COUNT} until moved, p50"
    yield at_most(moved, *_medians(ours, theirs, _move), MOVE_BOUND, name)
    yield at_most(f"list of {COUNT}, p50", *_medians(ours, theirs, _list), LIST_BOUND, name)
    yield _answers(ours, theirs)
    for prompt in (ours, theirs):
        prompt.does(prompt.manner.attach, prompt.manner.attached)
    seconds = _medians(ours, theirs, _evaluate)
    yield at_most("expression, attached, p50", *seconds, EXPRESSION_BOUND, name)
    for prompt in (ours, theirs):
        prompt.does("detach", prompt.manner.prompt)


def _medians(
    ours: Prompt, theirs: Prompt, measured: Callable[[Prompt], float]
) -> tuple[float, float]:
    """Return the median seconds of both, ours first."""
    times: dict[Prompt, list[float]] = {ours: [], theirs: []}
    for _ in range(WARM_UP + ROUNDS):
        for prompt, found in times.items():
            found.append(measured(prompt))
            time.sleep(REST)
    return median(times[ours][WARM_UP:]), median(times[theirs][WARM_UP:])


def _move(prompt: Prompt) -> float:
    """Return the seconds from a step of everybody until `list` shows that everybody has moved."""
    before = prompt.places()
    assert len(before) == COUNT
    prompt.forget()
    start = perf_counter()
    prompt.type(prompt.manner.cast.format("n"), "list")
    while not all_moved(before, prompt.table()):
        prompt.type("list")
    return perf_counter() - start


def _list(prompt: Prompt) -> float:
    return prompt.timed("list", prompt.manner.listed)


def _evaluate(prompt: Prompt) -> float:
    return prompt.timed(EXPRESSION, rb"\n?\d+\n" + prompt.manner.attached)


def _answers(ours: Prompt, theirs: Prompt) -> Figure:
    """How many ranks' answers a cast shows: Monarch's prompt comes back without any."""
    mine, other = (_answered(prompt) for prompt in (ours, theirs))
    told = f"{other} of {COUNT} {theirs.manner.name}"
    return Figure("answers that cast p shows", f"{mine} of {COUNT}", told, held=mine > other)


def _answered(prompt: Prompt) -> int:
    text = prompt.does(prompt.manner.cast.format("p number"), prompt.manner.prompt)
    text += prompt.does("list", prompt.manner.listed)  # whatever comes behind the prompt
    return answered_in(text)


class NoMonarchError(Exception):
    """Monarch is not to be had here; the message says why."""


def monarch_python() -> Path:
    """Return an interpreter that has Monarch. Raises NoMonarchError."""
    python = _VENV / "bin" / "python"
    stamp = _VENV / _READY
    if not stamp.exists() or stamp.read_text("utf-8") != PACKAGE:
        print(f"installing {PACKAGE} into {_VENV} (640 MB)", file=sys.stderr)
        _do(sys.executable, "-m", "venv", "--clear", str(_VENV))
        _do(str(python), "-m", "pip", "install", "--quiet", PACKAGE)
        stamp.write_text(PACKAGE, "utf-8")
    return python


def _do(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoMonarchError(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        told = (done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:]
        raise NoMonarchError(f"{PACKAGE} cannot be installed: {' '.join(told)}")


@contextmanager
def actors(python: Path) -> Iterator[int]:
    """Run the actors; yield the port of Monarch's debugger, which answers a little later."""
    port = free_ports(1)
    with _folder({"actors.py": _ACTORS, "main.py": _CONTROLLER}) as folder:
        environment = {
            **os.environ,
            "MONARCH_DEBUG_SERVER_HOST": "127.0.0.1",
            "MONARCH_DEBUG_SERVER_PORT": str(port),
            "PYTHONPATH": str(folder),
            "TMPDIR": str(folder),
        }
        process = subprocess.Popen(
            [str(python), "main.py"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that its actors end with it
        )
        try:
            yield port
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=_END)


@contextmanager
def ranks() -> Iterator[Job]:
    """Run the ranks as `dap-mux run` does, each held at its start, and a session over them."""
    mesh = f"hosts={HOSTS},gpus={GPUS}"
    with (
        _folder({"rank.py": _RANK}) as folder,
        agents(COUNT, folder / "rank.py", "--mesh", mesh) as job,
    ):
        yield job


@contextmanager
def _folder(files: dict[str, str]) -> Iterator[Path]:
    """Make a folder with these files, and the work that both do."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        for file, text in {**files, "work.py": _WORK}.items():
            Path(name, file).write_text(text, "utf-8")
        yield Path(name)
