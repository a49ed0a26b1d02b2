"""The processes around a measurement: the proxy as users run it, ranks, and our own helpers.

Ranks are as `dap-mux run` starts them, or as debugpy comes: of a script that is told its port and
calls `debugpy.listen` itself, with an adapter each.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import start_blocking_portal

from tests.support.processes.proc_net import free_ports
from tests.support.processes.ranks import Rank, debugpy_ranks

STOP_LINE: Final = 12  # in the program of `real_ranks`
_START: Final = 30.0  # s
_ALL_START: Final = 120.0  # s: many processes at once on two busy cores
_END: Final = 10.0  # s
_LOOK_AGAIN: Final = 0.02  # s
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LOOP: Final = """\
import os
import time

import debugpy

if "DEBUGPY_PORT" in os.environ:  # else it is run under our agent, which listens
    debugpy.listen(("127.0.0.1", int(os.environ["DEBUGPY_PORT"])))


def step(number):
    loss = number * 0.5
    return loss


number = 0
while True:
    number += 1
    step(number)
    time.sleep(0.05)
"""


@dataclass(frozen=True)
class Running:
    """A process that listens on `port`; `files`: the folder with its session file."""

    pid: int
    port: int
    files: str = ""

    @property
    def cpu(self) -> float:
        """Seconds of CPU that its main thread has used."""
        nanoseconds = Path(f"/proc/{self.pid}/schedstat").read_text("ascii").split()[0]
        return int(nanoseconds) * 1e-9

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return _resident(self.pid)


@dataclass(frozen=True)
class Job:
    """A session, its ranks' processes and, where they have any, their adapters'."""

    session: Running
    ranks: Sequence[int]
    adapters: Sequence[int]

    @property
    def memory(self) -> int:
        """Resident bytes of a rank with its adapter, the mean of all."""
        return sum(map(_resident, [*self.ranks, *self.adapters])) // len(self.ranks)


@dataclass(frozen=True)
class RealRanks:
    """Where they listen, and the script they run."""

    ports: list[int]
    path: str


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE


def proxy(ports: Sequence[int], *options: str) -> AbstractContextManager[Running]:
    """Run `dap-mux attach` over ranks on these ports."""
    return session(*(f"127.0.0.1:{port}" for port in ports), *options)


@contextmanager
def session(*words: str) -> Iterator[Running]:
    """Run `dap-mux attach WORDS`; SIGTERM at the end, which releases the ranks."""
    command = [sys.executable, "-m", "dap_mux", "attach", *words, "--listen", "127.0.0.1:0"]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        with _process(command, env=environment, stderr=subprocess.DEVNULL) as process:
            file = Path(folder) / "dap-mux" / f"{process.pid}.json"
            until(file.exists, "a session file", process)
            yield Running(process.pid, int(json.loads(file.read_text("utf-8"))["port"]), folder)


@contextmanager
def consoles(session: Running) -> Iterator[int]:
    """Run `dap-mux console --serve` on a session, found as users' are; yield the port it serves."""
    command = [sys.executable, "-m", "dap_mux", "console", f"127.0.0.1:{session.port}"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": session.files}
    with _process([*command, "--serve", "0"], env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        told = process.stderr.readline().decode()
        found = re.search(r"consoles on 127\.0\.0\.1:(\d+)", told)
        assert found, told
        yield int(found[1])


@contextmanager
def helper(module: str, *arguments: object, **environment: str) -> Iterator[tuple[int, list[int]]]:
    """Run `python -m tests.bench.MODULE`; yield its pid and the ports it says it listens on."""
    command = [sys.executable, "-m", f"tests.bench.{module}", *map(str, arguments)]
    env = {**os.environ, **environment}
    with _process(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.pid, json.loads(process.stdout.readline())


@contextmanager
def _process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_END)
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def until(
    holds: Callable[[], bool],
    what: str,
    process: subprocess.Popen[bytes] | None = None,
    *,
    within: float = _START,
    look_again: float = _LOOK_AGAIN,
) -> None:
    """Wait until this holds, and the process, if one is given, runs; times in seconds."""
    deadline = time.monotonic() + within
    while not holds():
        assert process is None or process.poll() is None, f"{process} ended before {what}"
        assert time.monotonic() < deadline, f"{what}: not within {within:g} s"
        time.sleep(look_again)


@contextmanager
def script(text: str) -> Iterator[Path]:
    """Write a program for ranks."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder) / "train.py"
        path.write_text(text, "utf-8")
        yield path


@contextmanager
def real_ranks(count: int) -> Iterator[RealRanks]:
    """Run ranks that are ready to be attached, each started before the block begins."""
    with script(_LOOP) as path, _debugpy(count, path) as ranks:
        yield RealRanks([rank.port for rank in ranks], str(path))


@contextmanager
def _debugpy(count: int, path: Path) -> Iterator[Sequence[Rank]]:
    running = debugpy_ranks(count, path, style="script")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running) as ranks:
        yield ranks


@contextmanager
def agents(count: int, path: Path, *options: str, wait: bool = True) -> Iterator[Job]:
    """Ranks under the in-rank agent, and a session: each its process and nothing beside it."""
    command = [sys.executable, "-m", "dap_mux.rank", "--wait" if wait else "--no-wait"]
    with _ranks(command, count, path) as (pids, ports), proxy(ports, *options) as through:
        yield Job(through, pids, ())


@contextmanager
def stock(count: int, path: Path, *options: str) -> Iterator[Job]:
    """Ranks of a program that calls `debugpy.listen`, and a session: an adapter each."""
    with (
        _debugpy(count, path) as ranks,
        proxy([rank.port for rank in ranks], *options) as through,
    ):
        yield Job(through, [rank.pid for rank in ranks], [rank.adapter for rank in ranks])


@contextmanager
def _ranks(command: Sequence[str], count: int, path: Path) -> Iterator[tuple[list[int], list[int]]]:
    """Start them; yield their pids and ports when all have said that they are ready."""
    first = free_ports(count)
    started: list[subprocess.Popen[bytes]] = []
    none = subprocess.DEVNULL
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        files = [Path(folder) / f"ready-{rank}.json" for rank in range(count)]
        try:
            for rank, file in enumerate(files):
                words = ["--port", str(first + rank), "--ready-file", str(file), str(path)]
                env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count)}
                started.append(
                    subprocess.Popen(
                        [*command, *words], env=env, stdin=none, stdout=none, stderr=none
                    )
                )
            until(lambda: all(file.exists() for file in files), "all ranks", within=_ALL_START)
            ports = [int(json.loads(file.read_text("utf-8"))["port"]) for file in files]
            yield [one.pid for one in started], ports
        finally:
            for process in started:
                process.kill()
            for process in started:
                process.wait()


def processors() -> tuple[int, int]:
    """Return two processors that we may use; the same one twice where there is only one."""
    ours = sorted(os.sched_getaffinity(0))
    return ours[0], ours[-1]


@contextmanager
def on(processor: int) -> Iterator[None]:
    """Keep this process, and those that it starts, on one processor."""
    before = os.sched_getaffinity(0)
    place(0, processor)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def place(pid: int, processor: int) -> None:
    """Move a process to one processor."""
    os.sched_setaffinity(pid, {processor})
