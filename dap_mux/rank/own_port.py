"""The rank's own port: a session of ours is served in this process, any other client as ever.

debugpy's adapter is a process of 12 to 17 MiB, takes two fifths of a step's CPU, and is the part
that dies. So the rank accepts connections by itself and reads their first request. An `initialize`
with `dapMux` comes from a session, which takes the adapter's part: its connection is handed to
debugpy in this process. For any other client, and for a session that debugs child processes, an
adapter is started (`stock_adapter`), to which the children's debuggers go. One debugger at a time:
who comes while another is here is told so, unless it shows the same key: then its earlier
connection is a broken one, and it takes its own place.
"""

from __future__ import annotations

import hmac
import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import Any

import debugpy  # noqa: T100

from dap_mux.rank.dap_message import NoMessage, read_message, write_message
from dap_mux.rank.in_process import (
    Connection,
    Source,
    hide_from_debugger,
    keep_alive,
    listen_to,
)
from dap_mux.rank.stock_adapter import NoAdapter, StockAdapter, trust

SESSION = "dapMux"
"""The argument of `initialize` by which a session makes itself known: an object with `key`, and
`children` where child processes are to be debugged, or `child` on the way to one."""
SERVED = "dapMuxServed"
"""The event by which it learns that there is no adapter; its body has debugpy's version."""
BACKLOG = 128
MAX_UNREAD = 32  # connections whose first request is still to come; then the oldest is dropped
FIRST_REQUEST_LIMIT_S = 10.0
READ_AT_ONCE = 4096  # bytes
FREE_WITHIN_S = 2.0  # of a connection that has ended, as debugpy may be busy with its last request
LEAVING_WITHIN_S = 0.3  # of one whose end may still have to be noticed
LINGER_S = 2.0
CLOSED = -1  # the file number of a closed socket


@dataclass(frozen=True)
class _Caller:
    """The sender of a connection's first request, as far as that request describes it."""

    is_session: bool
    key: str
    debugs_children: bool
    wants_child: bool

    @classmethod
    def of(cls, request: dict[str, Any]) -> _Caller:
        arguments = request.get("arguments")
        about = arguments.get(SESSION) if isinstance(arguments, dict) else None
        if request.get("command") != "initialize" or not isinstance(about, dict):
            return cls(False, "", False, False)
        key, children, child = about.get("key"), about.get("children"), "child" in about
        return cls(True, key if isinstance(key, str) else "", bool(children) or child, child)

    def is_same_as(self, key: str) -> bool:
        return bool(key) and hmac.compare_digest(key.encode(), self.key.encode())


class OwnPort(Source):
    """Accepts on a listening socket, and lets one debugger in at a time."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__()
        self._listener = listener
        self._address: tuple[str, int] = listener.getsockname()[:2]
        self._admitted: SimpleQueue[Connection | None] = SimpleQueue()
        self._unread: deque[socket.socket] = deque()
        self._deciding = threading.Lock()
        self._holder: Connection | None = None
        self._key = ""
        self._free = threading.Event()
        self._free.set()
        self._adapter: StockAdapter | None = None

    def start(self) -> None:
        """Accept connections from now on; raises OSError if somebody else has the port."""
        self._listener.listen(BACKLOG)
        self._thread(self._accept_all, "dap-mux port", self._listener)

    def reopen(self, listener: socket.socket) -> None:
        """Accept connections on this socket, after `shut`; raises OSError as `start` does."""
        self._listener, self._address = listener, listener.getsockname()[:2]
        self.start()

    def shut(self) -> None:
        """Accept no connections any more; the debugger that is attached loses its own."""
        with self._deciding:
            self._stop_accepting()
            self._end_holder()
            self._end_adapter()

    # For debugpy

    def getsockname(self) -> tuple[str, int]:
        """Where debuggers connect."""
        return self._address

    def next_connection(self) -> Connection:
        """Wait for the next debugger. Raises OSError once there will be no other."""
        connection = self._admitted.get()
        if connection is None:
            raise OSError("closed")
        return connection

    def released(self) -> None:
        """The last debugger is gone."""
        self._holder, self._key = None, ""
        trust(None)
        self._free.set()

    def close(self) -> None:
        """The process ends."""
        super().close()
        self._stop_accepting()
        self._admitted.put(None)

    def _stop_accepting(self) -> None:
        with suppress(OSError):  # which wakes whoever is in `accept`; closing alone does not
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    # For debuggers

    def _thread(self, target: Any, name: str, *arguments: Any) -> None:
        thread = threading.Thread(target=target, name=name, args=arguments, daemon=True)
        hide_from_debugger(thread).start()

    def _accept_all(self, listener: socket.socket) -> None:
        self.ready.wait()
        while listener.fileno() != CLOSED:
            try:
                connection, _ = listener.accept()
            except OSError:
                if listener.fileno() != CLOSED:  # no file handle is left, say
                    self._closed.wait(FREE_WITHIN_S)
                continue
            self._unread.append(connection)
            if len(self._unread) > MAX_UNREAD:
                with suppress(OSError, IndexError):
                    self._unread.popleft().shutdown(socket.SHUT_RDWR)
            self._thread(self._receive, "dap-mux connection", connection)

    def _receive(self, connection: socket.socket) -> None:
        try:
            read, request = read_message(connection, FIRST_REQUEST_LIMIT_S, READ_AT_ONCE)
            connection.settimeout(None)
            self._forget_unread(connection)
            with self._deciding:
                refusal = self._decide(connection, read, _Caller.of(request))
            if refusal:
                _refuse(connection, request, refusal)
        except (OSError, NoMessage):
            self._forget_unread(connection)
            connection.close()

    def _forget_unread(self, connection: socket.socket) -> None:
        with suppress(ValueError):
            self._unread.remove(connection)

    def _decide(self, connection: socket.socket, read: bytes, caller: _Caller) -> str:
        """Let a debugger in, or return why not.

        Each gets an adapter of its own. One that sees its client out has no connection to us any
        more, and whoever was handed to it then had no answer (measured: 5 of 50 that came at once).
        """
        if caller.wants_child and self._adapter is not None:
            return self._hand_over(connection, read, caller)
        if not self._is_free_for(caller):
            return f"process {os.getpid()} is already being debugged."
        if caller.wants_child:
            return f"no child process of {os.getpid()} waits for a debugger."
        self._end_adapter()
        if caller.is_session and not caller.debugs_children:
            write_message(connection, _served())
            self._admit(Connection(connection, read), caller.key)
            return ""
        try:
            self._adapter = StockAdapter.start(self._address)
            self._admit(self._adapter.connect(), caller.key)
        except NoAdapter as error:
            return str(error)
        return self._hand_over(connection, read, caller)

    def _hand_over(self, connection: socket.socket, read: bytes, caller: _Caller) -> str:
        adapter = self._adapter
        if adapter is not None and adapter.takes(connection, read, stays=caller.debugs_children):
            return ""
        self._adapter = None
        self._end_holder()
        return "debugpy's adapter has ended"

    def _end_adapter(self) -> None:
        adapter, self._adapter = self._adapter, None
        if adapter is not None:
            adapter.end()

    def _is_free_for(self, caller: _Caller) -> bool:
        holder = self._holder
        if holder is None:
            return True
        if caller.is_same_as(self._key):
            self._end_holder()
            return self._free.wait(FREE_WITHIN_S)
        return self._free.wait(FREE_WITHIN_S if holder.over.is_set() else LEAVING_WITHIN_S)

    def _end_holder(self) -> None:
        holder = self._holder
        if holder is not None:
            with suppress(OSError):
                holder.shutdown(socket.SHUT_RDWR)
            holder.over.set()

    def _admit(self, connection: Connection, key: str) -> None:
        keep_alive(connection)
        self._holder, self._key = connection, key
        self._free.clear()
        self._admitted.put(connection)

    def _in_forked_child(self) -> None:
        """A child that outlives us must keep nothing of it open."""
        super()._in_forked_child()
        if self._listener.fileno() != CLOSED:
            with suppress(OSError):  # whoever forked may have closed all files of the child
                os.close(self._listener.detach())
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
    kind: Any = import_module(
        "_pydevd_bundle.pydevd_process_net_command_json"
    ).PyDevJsonCommandProcessor
    disconnect = kind.on_disconnect_request

    def disconnect_and_hang_up(self: Any, debugger: Any, request: Any) -> Any:
        answer = disconnect(self, debugger, request)
        answer.call_after_send(lambda connection: connection.shutdown(socket.SHUT_RDWR))
        return answer

    kind.on_disconnect_request = disconnect_and_hang_up


def _served() -> dict[str, Any]:
    return {"seq": 1, "type": "event", "event": SERVED, "body": {"debugpy": debugpy.__version__}}


def _refuse(connection: socket.socket, request: dict[str, Any], why: str) -> None:
    refusal: dict[str, Any] = {
        "seq": 1,
        "type": "response",
        "request_seq": request.get("seq"),
        "success": False,
        "command": request.get("command"),
        "message": why,
        "body": {},
    }
    write_message(connection, refusal)
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(LINGER_S)
    connection.recv(1 << 16)  # were it closed with bytes unread, the refusal might not arrive
    connection.close()
