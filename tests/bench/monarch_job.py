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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.agents import Job, agents
from tests.support.processes.proc_net import free_ports

HOSTS, GPUS = 4, 4
COUNT: Final = HOSTS * GPUS
PACKAGE: Final = "torchmonarch==0.7.0"
_VENV: Final = Path(__file__).parents[2] / ".cache" / "monarch"
_READY: Final = ".installed"  # a half-made environment has none
_LAST_LINES: Final = 2
_END: Final = 10.0  # s

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
