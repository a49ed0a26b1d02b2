"""The rank's own port: a session of ours is served in this process, any other client as ever."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import debugpy  # noqa: T100

from dap_mux.rank.dap_message import write_message
from dap_mux.rank.door import Door, Visitor
from dap_mux.rank.handed_clients import LENGTH, TAKEN
from dap_mux.rank.in_process import (
    SESSION,
    Connection,
    Source,
    command_processor,
    keep_alive,
    listen_to,
    start_hidden,
    the_debugger,
)
from dap_mux.rank.injected.attach import adapter_keeper

# debugpy's adapter, started when a client comes that needs it, and gone again with the last one.
#
# Clients are handed to it over a pair of sockets as the file handles that they are, so it listens
# on no port of its own for them, and what it says of its port is said of the rank's.

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


# debugpy's adapter is a process of 12 to 17 MiB, takes two fifths of a step's CPU, and is the part
# that dies. So the rank accepts connections by itself and reads their first request. An
# `initialize` with `dapMux` comes from a session, which takes the adapter's part: its connection is
# handed to debugpy in this process. For any other client, and for a session that debugs child
# processes, an adapter is started (`StockAdapter`), to which the children's debuggers go. One
# debugger at a time: who comes while another is here is told so, unless it shows the same key: then
# its earlier connection is a broken one, and it takes its own place.
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
            with its:
                server = adapter_keeper.started(
                    lambda port: _spawn(port, address, token, its.fileno())
                )
        except (OSError, ValueError, KeyError, TypeError) as error:
            ours.close()
            raise NoAdapter(f"debugpy's adapter has not started: {error}") from None
        ours.settimeout(TAKE_LIMIT_S)
        return cls(ours, server, token)

    def connect(self) -> Connection:
        """Return the connection over which it debugs this process. Raises `NoAdapter`."""
        try:
            plain = socket.create_connection(self._server, adapter_keeper.START_TIMEOUT_S)
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


SERVED = "dapMuxServed"
"""The event by which it learns that there is no adapter; its body has debugpy's version."""
FREE_WITHIN_S = 2.0  # of a connection that has ended, as debugpy may be busy with its last request
LEAVING_WITHIN_S = 0.3  # of one whose end may still have to be noticed


@dataclass(frozen=True)
class _Caller:
    """The sender of a connection's first request, as far as that request describes it."""

    is_session: bool
    key: bytes
    debugs_children: bool
    wants_child: bool

    @classmethod
    def of(cls, request: dict[str, Any]) -> _Caller:
        arguments = request.get("arguments")
        about = arguments.get(SESSION) if isinstance(arguments, dict) else None
        if request.get("command") != "initialize" or not isinstance(about, dict):
            return cls(False, b"", False, False)
        key, children, child = about.get("key"), about.get("children"), "child" in about
        known = key.encode("utf-8", "replace") if isinstance(key, str) else b""
        return cls(True, known, bool(children) or child, child)

    def is_same_as(self, key: bytes) -> bool:
        return bool(key) and hmac.compare_digest(key, self.key)


class OwnPort(Source):
    """Accepts on a listening socket, and lets one debugger in at a time."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__()
        self._door = Door(listener, self._decide)
        self._admitted: SimpleQueue[Connection | None] = SimpleQueue()
        self._deciding = threading.Lock()
        self._holder: Connection | None = None
        self._key = b""
        self._free = threading.Event()
        self._free.set()
        self._adapter: StockAdapter | None = None

    def start(self) -> None:
        """Accept connections from now on; raises OSError if somebody else has the port."""
        self._door.open()
        start_hidden(self._serve, self._door, name="dap-mux port")

    def _serve(self, door: Door) -> None:
        self.ready.wait()
        door.serve()

    def reopen(self, listener: socket.socket) -> None:
        """Accept connections on this socket, after `shut`; raises OSError as `start` does."""
        self._door = Door(listener, self._decide)
        self.start()

    def shut(self) -> None:
        """Accept no connections any more; the debugger that is attached loses its own."""
        with self._deciding:
            self._door.close()
            self._end_holder()
            self._end_adapter()

    # For debugpy

    def getsockname(self) -> tuple[str, int]:
        """Where debuggers connect."""
        return self._door.address

    def next_connection(self) -> Connection:
        """Wait for the next debugger. Raises OSError once there will be no other."""
        connection = self._admitted.get()
        if connection is None:
            raise OSError("closed")
        return connection

    def released(self) -> None:
        """The last debugger is gone."""
        self._holder, self._key = None, b""
        trust(None)
        self._free.set()

    def close(self) -> None:
        """The process ends."""
        super().close()
        self._door.close()
        self._admitted.put(None)

    # For debuggers

    def _decide(self, visitor: Visitor) -> str:
        """Let a debugger in, or return why not."""
        with self._deciding:
            return self._decide_on(visitor, _Caller.of(visitor.request))

    def _decide_on(self, visitor: Visitor, caller: _Caller) -> str:
        """Each client gets an adapter of its own.

        One that sees its client out has no connection to us any more, and whoever was handed to it
        then had no answer (measured: 5 of 50 that came at once).
        """
        if caller.wants_child and self._adapter is not None:
            return self._hand_over(visitor, caller)
        if not self._is_free_for(visitor, caller):
            return f"process {os.getpid()} is already being debugged."
        if caller.wants_child:
            return f"no child process of {os.getpid()} waits for a debugger."
        self._end_adapter()
        if caller.is_session and not caller.debugs_children:
            write_message(visitor.connection, _served())
            self._admit(Connection(visitor.connection, visitor.read), caller.key)
            return ""
        try:
            self._adapter = StockAdapter.start(self._door.address)
            self._admit(self._adapter.connect(), caller.key)
        except NoAdapter as error:
            return str(error)
        return self._hand_over(visitor, caller)

    def _hand_over(self, visitor: Visitor, caller: _Caller) -> str:
        adapter, stays = self._adapter, caller.debugs_children
        if adapter is not None and adapter.takes(visitor.connection, visitor.read, stays=stays):
            return ""
        self._adapter = None
        self._end_holder()
        return "debugpy's adapter has ended"

    def _end_adapter(self) -> None:
        adapter, self._adapter = self._adapter, None
        if adapter is not None:
            adapter.end()

    def _is_free_for(self, visitor: Visitor, caller: _Caller) -> bool:
        holder = self._holder
        if holder is None:
            return True
        if caller.is_same_as(self._key):
            self._end_holder()
            return self._free.wait(FREE_WITHIN_S)
        within = FREE_WITHIN_S if holder.over.is_set() else LEAVING_WITHIN_S
        return self._free.wait(max(0.0, visitor.came + within - time.monotonic()))

    def _end_holder(self) -> None:
        holder = self._holder
        if holder is not None:
            holder.hang_up()

    def _admit(self, connection: Connection, key: bytes) -> None:
        keep_alive(connection)
        self._holder, self._key = connection, key
        self._free.clear()
        self._admitted.put(connection)

    def _in_forked_child(self) -> None:
        """A child that outlives us must keep nothing of it open."""
        super()._in_forked_child()
        self._door.forget()
        if self._adapter is not None:
            self._adapter.forget()


_ports: list[OwnPort] = []  # at most one: debugpy is started once in a process


def listen_at(listener: socket.socket, prepare: Callable[[], None]) -> tuple[str, int]:
    """Let debuggers in through `listener`, a bound socket; returns its address.

    `prepare` is called once debugpy is started, and before the first is let in.

    Raises OSError if somebody else has the port, and `CannotListen`.
    """
    if _ports:
        _ports[0].reopen(listener)
        return _ports[0].getsockname()
    port = OwnPort(listener)
    port.start()
    address = port.getsockname()
    listen_to(port, address)
    _ports.append(port)
    with suppress(Exception):
        _hang_up_after_disconnect()
    prepare()
    port.ready.set()
    return address


def stop_listening() -> None:
    """Let no debugger in any more, until `listen_at` is called again."""
    for port in _ports:
        port.shut()


def has_been_opened() -> bool:
    """Whether this process's debugger was started here."""
    return bool(_ports)


def _hang_up_after_disconnect() -> None:
    """As debugpy's adapter does; clients may wait for it. debugpy's private matter."""
    kind = command_processor()
    disconnect = kind.on_disconnect_request

    def disconnect_and_hang_up(self: Any, debugger: Any, request: Any) -> Any:
        answer = disconnect(self, debugger, request)
        answer.call_after_send(lambda connection: connection.shutdown(socket.SHUT_RDWR))
        return answer

    kind.on_disconnect_request = disconnect_and_hang_up


def _served() -> dict[str, Any]:
    return {"seq": 1, "type": "event", "event": SERVED, "body": {"debugpy": debugpy.__version__}}
