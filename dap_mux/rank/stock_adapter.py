"""debugpy's adapter, started when a client comes that needs it, and gone again with the last one.

Clients are handed to it over a pair of sockets as the file handles that they are, so it listens on
no port of its own for them, and what it says of its port is said of the rank's.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dap_mux.rank.handed_clients import LENGTH, TAKEN
from dap_mux.rank.in_process import Connection, the_debugger

START_LIMIT_S = 30.0
TAKE_LIMIT_S = 10.0
PROGRAM = """\
import sys
sys.path[:1] = [] if sys.path[0] == "" else sys.path[:1]
sys.path.insert(0, {ours!r})
from dap_mux.rank.handed_clients import run
del sys.path[0]
run({debugpys!r}, {control})  # debugpy.adapter
"""


class NoAdapter(Exception):
    """debugpy's adapter did not start; the message says why."""


class StockAdapter:
    """One process of debugpy's adapter."""

    def __init__(self, control: socket.socket, server: tuple[str, int], token: str) -> None:
        self._control = control
        self._server = server
        self._token = token

    @classmethod
    def start(cls, address: tuple[str, int]) -> StockAdapter:
        """Start the process; `address`: where clients think it listens. Raises `NoAdapter`."""
        ours, its = socket.socketpair()
        token = secrets.token_hex(32)
        try:
            with its, socket.create_server(("127.0.0.1", 0)) as listener:
                listener.settimeout(START_LIMIT_S)
                _spawn(listener.getsockname()[1], address, token, its.fileno())
                connection, _ = listener.accept()
                with connection, connection.makefile("rb") as file:
                    connection.settimeout(START_LIMIT_S)
                    told = json.loads(file.read().decode("utf-8"))
            server = told["server"]["host"], told["server"]["port"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            ours.close()
            raise NoAdapter(f"debugpy's adapter has not started: {error}") from None
        ours.settimeout(TAKE_LIMIT_S)
        return cls(ours, server, token)

    def connect(self) -> Connection:
        """Return the connection over which it debugs this process. Raises `NoAdapter`."""
        try:
            plain = socket.create_connection(self._server, START_LIMIT_S)
        except OSError as error:
            self.end()
            raise NoAdapter(f"debugpy's adapter cannot be reached: {error}") from None
        plain.settimeout(None)
        setup = import_module("pydevd").SetupHolder.setup  # which child processes are told
        setup["client"], setup["port"], setup["access-token"] = *self._server, self._token
        trust(self._token)
        return Connection(plain)

    def takes(self, client: socket.socket, read: bytes, *, stays: bool) -> bool:
        """Hand a client over, with what has been `read` of it; False if the process has ended.

        `stays`: it does not end with its last client any more, because child processes may come.
        """
        try:
            socket.send_fds(self._control, [LENGTH.pack(stays, len(read))], [client.fileno()])
            self._control.sendall(read)
            taken = self._control.recv(1) == TAKEN
        except OSError:
            taken = False
        if taken:
            client.close()
        else:
            self.end()
        return taken

    def end(self) -> None:
        """It ends when this is closed."""
        self._control.close()

    def forget(self) -> None:
        """In a forked child, which has nothing to do with it."""
        with suppress(OSError):
            os.close(self._control.detach())


def _spawn(port: int, address: tuple[str, int], token: str, control: int) -> None:
    words = {
        "--for-server": port,
        "--host": address[0],
        "--port": address[1],
        "--server-access-token": token,
    }
    api: Any = import_module("debugpy.server.api")
    python = api._config.get("python", sys.executable)  # noqa: SLF001
    program = PROGRAM.format(
        ours=str(_folder_of("dap_mux")), debugpys=str(_folder_of("debugpy")), control=control
    )
    monkey = import_module("_pydev_bundle.pydev_monkey")
    with monkey.skip_subprocess_arg_patch():  # it is no child to be debugged
        process = subprocess.Popen(
            [python, "-c", program, *(str(word) for pair in words.items() for word in pair)],
            stdin=subprocess.DEVNULL,
            pass_fds=[control],
        )
    process.wait()  # it goes on in a process of its own


def _folder_of(package: str) -> Path:
    return Path(import_module(package).__file__ or "").resolve().parent.parent


def trust(token: str | None) -> None:
    """Debug nothing for a peer that does not show `token`; None: for every peer."""
    with suppress(AttributeError):
        authentication = the_debugger().authentication
        authentication.access_token = token
        authentication.logout()
