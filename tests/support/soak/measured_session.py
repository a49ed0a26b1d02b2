"""A session in a process of its own, which says what it holds.

`python -m tests.support.soak.measured_session` takes the commands of `MeasuredSession` on its
standard input, and ends with that, as on SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Final

import anyio

from dap_mux.engine import Engine, Settings, inputs
from dap_mux.pure.endpoint import Endpoint
from dap_mux.session.session import RELEASE_TIMEOUT_S, injected_sources
from dap_mux.shell.driver import Driver
from dap_mux.shell.listeners import listen
from dap_mux.shell.timers import return_free_memory
from dap_mux.system.user_files import new_token
from tests.support.soak.commanded import obey

KIB: Final = os.sysconf("SC_PAGE_SIZE") // 1024
HOST: Final = "127.0.0.1"


class MeasuredSession:
    """The commands."""

    def __init__(self, port: int, driver: Driver) -> None:
        self._port = port
        self._driver = driver

    async def port(self) -> int:
        """Return where clients connect."""
        return self._port

    async def known(self, rank: int, port: int) -> None:
        """A rank listens there, also once more."""
        endpoint = Endpoint(HOST, port, ready=True)
        self._driver.feed(inputs.RankKnown(("job", rank), endpoint))

    async def ended(self, rank: int) -> None:
        """A rank's process was killed, as its launcher has seen."""
        self._driver.feed(inputs.RankExited(("job", rank), -9))

    async def measure(self, *, collected: bool = False) -> dict[str, float]:
        """Return a sample; `collected`: as after a quiet moment, which never comes here."""
        if collected:
            gc.collect()
            return_free_memory()
        core = self._driver.engine.core
        return {
            "rss": resident(),
            "objects": len(gc.get_objects()),
            "files": open_files(),
            "threads": threading.active_count(),
            "tasks": len(asyncio.all_tasks()),
            "handles": len(core.handles),
            "deadlines": core.deadlines,
            "timers": len(self._driver._deadlines),
            "links": len(core.links),
            "clients": len(core.clients),
            "errors": core.faults,
        }

    async def kinds(self) -> dict[str, int]:
        """Return how many objects there are of each type."""
        gc.collect()
        return Counter(type(each).__qualname__ for each in gc.get_objects())

    async def described_files(self) -> list[str]:
        """Return what each open file is, and where each socket leads."""
        return described_files()

    async def rest(self) -> dict[str, float]:
        """Return a sample without garbage."""
        return await self.measure(collected=True)


def resident() -> int:
    """Return how much of this process is in memory, in KiB."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * KIB


def described_files() -> list[str]:
    """Return what each open file of this process is."""
    return [_described(int(each.name)) for each in Path("/proc/self/fd").iterdir()]


def _described(number: int) -> str:
    """Return what this open file is."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
        return f"{number}: {one.getsockname()} -> {_peer(one)}"
    with contextlib.suppress(OSError):
        return f"{number}: {Path(f'/proc/self/fd/{number}').readlink()}"
    return f"{number}: closed meanwhile"


def _peer(one: socket.socket) -> object:
    try:
        return one.getpeername()
    except OSError as error:
        return error.strerror


def open_files() -> int:
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def main() -> None:
    settings = Settings(backoff_most=2.0, key=new_token())
    driver = Driver(Engine(injected_sources(), settings))
    server, port = await listen(driver, HOST, 0)
    session = MeasuredSession(port, driver)
    commands = (
        session.port,
        session.known,
        session.ended,
        session.measure,
        session.kinds,
        session.described_files,
        session.rest,
    )
    await obey({command.__name__: command for command in commands})
    driver.feed(inputs.Shutdown("the soak is over"))
    with anyio.move_on_after(RELEASE_TIMEOUT_S):
        await driver.no_links()
    server.close()
    await driver.close()


if __name__ == "__main__":
    anyio.run(main)
