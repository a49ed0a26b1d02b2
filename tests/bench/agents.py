"""A session over ranks as `dap-mux run` starts them, or over ranks as debugpy comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anyio.from_thread import start_blocking_portal

from tests.bench.processes import Running, session
from tests.support.processes.proc_net import free_ports
from tests.support.processes.ranks import debugpy_ranks

_START: Final = 120.0  # s: many processes at once on two busy cores
_LOOK_AGAIN: Final = 0.05  # s
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
LOOPBACK: Final = "127.0.0.1"


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


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE


@contextmanager
def agents(count: int, script: Path, *options: str, wait: bool = True) -> Iterator[Job]:
    """Ranks under the in-rank agent: each its process and nothing beside it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        command = [sys.executable, "-m", "dap_mux.rank", "--wait" if wait else "--no-wait"]
        with (
            _ranks(command, count, script, Path(name)) as (pids, ports),
            _over(ports, options) as on,
        ):
            yield Job(on, pids, ())


@contextmanager
def stock(count: int, script: Path, *options: str) -> Iterator[Job]:
    """Ranks of a `script` that is told its port and calls `debugpy.listen`: an adapter each."""
    running = debugpy_ranks(count, script, style="script")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running) as ranks,
        _over([rank.port for rank in ranks], options) as through,
    ):
        yield Job(through, [rank.pid for rank in ranks], [rank.adapter for rank in ranks])


def _over(ports: Sequence[int], options: Sequence[str]) -> AbstractContextManager[Running]:
    return session(*(f"{LOOPBACK}:{port}" for port in ports), *options)


@contextmanager
def _ranks(
    command: Sequence[str], count: int, script: Path, folder: Path
) -> Iterator[tuple[list[int], list[int]]]:
    """Start them; yield their pids and ports when all have said that they are ready."""
    first = free_ports(count)
    started: list[subprocess.Popen[bytes]] = []
    try:
        files = [folder / f"ready-{rank}.json" for rank in range(count)]
        for rank, file in enumerate(files):
            words = ["--port", str(first + rank), "--ready-file", str(file), str(script)]
            place = {"RANK": str(rank), "WORLD_SIZE": str(count)}
            started.append(
                subprocess.Popen(
                    [*command, *words],
                    env={**os.environ, **place},
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
