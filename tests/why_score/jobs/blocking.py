"""What a rank may do in place of its work: most of these never return."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import hashlib
import os
import pdb  # noqa: T100
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOR_EVER = 100_000  # seconds
_kept: list[object] = []
_place: list[Path] = []


class ShardError(RuntimeError):
    """A shard cannot be read."""


def asleep() -> None:
    """Wait for nothing."""
    time.sleep(FOR_EVER)


def spinning() -> None:
    """Never converge."""
    error = 1.0
    while error > 0:
        error = 0.5 + error / 2


def native_work() -> None:
    """Work in C without the GIL."""
    hashlib.pbkdf2_hmac("sha256", b"key", b"salt", 2**31 - 1)


def gil_asleep() -> None:
    """Call a library that keeps the GIL."""
    ctypes.PyDLL(None).sleep(FOR_EVER)


def gil_busy() -> None:
    """Match an expression that takes for ever, in C and with the GIL."""
    re.match(r"(x+x+)+y", "x" * 60)


def lock_cycle() -> None:
    """Take two locks, while another thread takes them the other way round."""
    metrics, log = threading.Lock(), threading.Lock()
    both = threading.Barrier(2)

    def flush() -> None:
        with log:
            both.wait()
            with metrics:
                pass

    threading.Thread(target=flush, name="flush", daemon=True).start()
    with metrics:
        both.wait()
        with log:
            pass


def lock_twice() -> None:
    """Take a lock that this thread has."""
    cache = threading.Lock()
    with cache, cache:
        pass


def read_slow_disk() -> None:
    """Read a file whose data never comes."""
    (_place[0] / "shard").read_bytes()


def lock_file() -> None:
    """Wait for a file that another process has locked."""
    with (_place[0] / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def fetch() -> None:
    """Ask a server that never answers."""
    server = socket.create_server(("127.0.0.1", 0))
    _kept.append(server)
    with urllib.request.urlopen(f"http://127.0.0.1:{server.getsockname()[1]}/shard") as answer:
        answer.read()


def read_terminal() -> None:
    """Ask a question that nobody sees."""
    readable, writable = os.pipe()
    _kept.append(writable)
    os.dup2(readable, 0)
    input("Overwrite the checkpoint? ")


def wait_for_child() -> None:
    """Wait for a command that does not end."""
    subprocess.run(["sleep", str(FOR_EVER)], check=False)


def debug() -> None:
    """Stop for somebody who is not there."""
    readable, writable = os.pipe()
    _kept.append(writable)
    pdb.Pdb(stdin=os.fdopen(readable), stdout=sys.stdout).set_trace()


def fail() -> None:
    """Raise what the job's own handler catches."""
    raise ShardError("shard 7 is damaged")


def leave() -> None:
    """End the process without a word to anybody."""
    os._exit(3)


def leave_main_thread() -> None:
    """End the main thread, while another one goes on."""
    threading.Thread(target=asleep, name="uploader").start()
    raise SystemExit(1)


def end() -> None:
    """Have nothing left to do."""


def hook_exit() -> None:
    """Upload to a server that never answers, at the end."""
    atexit.register(fetch)


@dataclass(frozen=True)
class Fault:
    """Something that happens at a place of the job."""

    place: str
    happen: Callable[[], None]


FAULTS = {
    "asleep": Fault("compute", asleep),
    "spinning": Fault("compute", spinning),
    "native-work": Fault("compute", native_work),
    "gil-asleep": Fault("compute", gil_asleep),
    "gil-busy": Fault("compute", gil_busy),
    "lock-cycle": Fault("compute", lock_cycle),
    "lock-twice": Fault("compute", lock_twice),
    "slow-disk": Fault("compute", read_slow_disk),
    "file-lock": Fault("compute", lock_file),
    "fetch": Fault("compute", fetch),
    "prompt": Fault("compute", read_terminal),
    "child-process": Fault("compute", wait_for_child),
    "pdb": Fault("compute", debug),
    "exception": Fault("compute", fail),
    "exits": Fault("compute", leave),
    "main-ended": Fault("compute", leave_main_thread),
    "exit-hook": Fault("compute", hook_exit),
    "early-end": Fault("end", end),
    "loader-asleep": Fault("load", asleep),
    "loader-disk": Fault("load", read_slow_disk),
    "loader-gone": Fault("load", sys.exit),
}


@dataclass(frozen=True)
class Pace:
    """A healthy job's way to be slow; `ours`: only the chosen rank takes this long."""

    place: str
    seconds: float
    ours: bool = False
    busy: bool = False

    def take(self, rank: int, chosen: int) -> None:
        """Be as slow as that."""
        if self.ours and rank != chosen:
            return
        if not self.busy:
            time.sleep(self.seconds)
            return
        until = time.thread_time() + self.seconds
        while time.thread_time() < until:
            hashlib.sha256(b"x").digest()


PACES = {
    "healthy": Pace("compute", 0.02),
    "healthy-long-steps": Pace("compute", 0.6),
    "healthy-busy": Pace("compute", 0.15, busy=True),
    "healthy-straggler": Pace("compute", 0.15, ours=True),
    "healthy-slow-loader": Pace("load", 0.2),
    "healthy-checkpoint": Pace("checkpoint", 0.2, ours=True),
}


def _make_fifo(folder: Path) -> None:
    _place[:] = [folder]
    with suppress(FileExistsError):
        os.mkfifo(folder / "shard")
    _kept.append(os.open(folder / "shard", os.O_RDWR))  # so that opening it does not wait


def _lock_elsewhere(folder: Path) -> None:
    """Whoever started the job has the lock."""
    _place[:] = [folder]


PREPARE = {"slow-disk": _make_fifo, "loader-disk": _make_fifo, "file-lock": _lock_elsewhere}
