"""The processes around a measurement: the proxy as users run it, and our own helpers."""

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

_START: Final = 30.0  # s
_END: Final = 10.0  # s
_LOOK_AGAIN: Final = 0.02  # s


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
            _until(file.exists, process, "a session file")
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
def helper(module: str, *arguments: object) -> Iterator[tuple[int, list[int]]]:
    """Run `python -m tests.bench.MODULE`; yield its pid and the ports it says it listens on."""
    command = [sys.executable, "-m", f"tests.bench.{module}", *map(str, arguments)]
    with _process(command, stdout=subprocess.PIPE) as process:
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


def _until(holds: Callable[[], bool], process: subprocess.Popen[bytes], what: str) -> None:
    deadline = time.monotonic() + _START
    while not holds():
        assert process.poll() is None, f"ended with {process.returncode} before {what}"
        assert time.monotonic() < deadline, f"{what}: not within {_START:g} s"
        time.sleep(_LOOK_AGAIN)


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
