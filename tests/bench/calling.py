"""A session and ranks under the in-rank agent: they call it, or they listen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dap_mux.private_files import token_of
from tests.bench.processes import Running, session
from tests.support.processes.proc_net import free_ports, listener

_START: Final = 120.0  # s: many processes at once on two busy cores
_LOOK_AGAIN: Final = 0.05  # s
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True)
class Job:
    """A session, its ranks' processes and, where they listen, their adapters'."""

    session: Running
    ranks: Sequence[int]
    adapters: Sequence[int]

    @property
    def memory(self) -> int:
        """Resident bytes of a rank with its adapter, the mean of all."""
        return sum(map(_resident, [*self.ranks, *self.adapters])) // len(self.ranks)


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE


@contextmanager
def calling(count: int, script: Path, *options: str, wait: bool = True) -> Iterator[Job]:
    """Ranks that call: each its process and nothing beside it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder, at = Path(name), f"{LOOPBACK}:{free_ports(1)}"
        token = folder / "token"
        token_of(token)
        words = (f"dial:{count}", "--dial-listen", at, "--token-file", str(token))
        told = {"DAP_MUX_DIAL": at, "DAP_MUX_DIAL_TOKEN_FILE": str(token)}
        with (
            session(*words, *options) as through,
            _ranks(count, script, folder, told, wait=wait) as (pids, _),
        ):
            yield Job(through, pids, ())


@contextmanager
def listening(count: int, script: Path, *options: str, wait: bool = True) -> Iterator[Job]:
    """Ranks that listen, as debugpy comes: an adapter beside each."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        told = {"DEBUGPY_PROCESS_SPAWN_TIMEOUT": str(int(_START))}
        with _ranks(count, script, Path(name), told, wait=wait) as (pids, ports):
            adapters = [listener(port) for port in ports]
            words = [f"{LOOPBACK}:{port}" for port in ports]
            with session(*words, *options) as through:
                yield Job(through, pids, [pid for pid in adapters if pid])


@contextmanager
def _ranks(
    count: int, script: Path, folder: Path, told: dict[str, str], *, wait: bool
) -> Iterator[tuple[list[int], list[int]]]:
    """Start them; yield their pids and ports when all have said that they are ready."""
    first = free_ports(count)
    started: list[subprocess.Popen[bytes]] = []
    try:
        files = [folder / f"ready-{rank}.json" for rank in range(count)]
        for rank, file in enumerate(files):
            hold = "--wait" if wait else "--no-wait"
            words = [hold, "--port", str(first + rank), "--ready-file", str(file), str(script)]
            place = {"RANK": str(rank), "WORLD_SIZE": str(count)}
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dap_mux.rank", *words],
                    env={**os.environ, **place, **told},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        yield [one.pid for one in started], _ports(files)
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def _ports(files: Sequence[Path]) -> list[int]:
    deadline = time.monotonic() + _START
    while not all(file.exists() for file in files):
        assert time.monotonic() < deadline, "the ranks did not start"
        time.sleep(_LOOK_AGAIN)
    return [int(json.loads(file.read_text("utf-8"))["port"]) for file in files]
