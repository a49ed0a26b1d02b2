"""Which processes of this machine ranks are, by what is known of them."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import ExitStack
from typing import Final

from dap_mux.shell.process_reader import read_processes

TABLE: Final = "net/tcp"


class _TablesRead:
    """Counts how often a table of all connections is opened, from now on; hooks stay."""

    def __init__(self) -> None:
        self.count = 0
        self._on = True
        sys.addaudithook(self._opened)

    def stop(self) -> int:
        self._on = False
        return self.count

    def _opened(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._on and event == "open" and TABLE in str(arguments[0]):
            self.count += 1


def read_of(ports: list[int]) -> tuple[dict[str, int], int]:
    """Return the pids by identity, and how often the system's tables were read."""
    tables = _TablesRead()
    found = read_processes([f":{port}" for port in ports])
    return {each: process.pid for each, process in found.items()}, tables.stop()


def test_listeners_are_found_by_their_ports() -> None:
    """All of them at once: a table may have thousands of rows, and a job hundreds of ranks."""
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(17)]
        ports = [server.getsockname()[1] for server in servers]
        servers.pop().close()
        found, times = read_of(ports)
        assert found == {f":{port}": os.getpid() for port in ports[:-1]}
        assert times == read_of(ports[:1])[1]
