"""debugpy in this process alone: no adapter beside it, and its connections are of our making."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any

import debugpy  # noqa: T100

from dap_mux.rank.injected.attach import adapter_keeper, child_processes

# The system closes an idle connection after 14 s without an answer; not one with unsent data.
KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3))
NO_WAIT = getattr(socket, "MSG_DONTWAIT", 0)  # Windows has none, nor is silence noticed there
SESSION = "dapMux"
"""The argument of `initialize` by which a session makes itself known: an object with `key` and
`silence`, and `children` where child processes are to be debugged, or `child` on the way to one."""
CHECK_INTERVAL_S = 1.0
SHORTEST_SILENCE_S = 1.0
READER = "pydevd.Reader"  # the name of the thread that reads what a debugger sends


class CannotListen(Exception):
    """debugpy did not start to listen; the message says why."""


class Connection(socket.socket):
    """A connection that says when its peer is gone. `read`: what has been read of it already."""

    def __init__(self, plain: socket.socket, read: bytes = b"") -> None:
        super().__init__(plain.family, plain.type, plain.proto, fileno=plain.detach())
        self.over = threading.Event()
        self._read = read
        self._heard = time.monotonic()

    def recv(self, *arguments: int) -> bytes:
        """As ever; but who waits for the end hears of it."""
        if self._read:
            data, self._read = self._read, b""
            return data
        try:
            data = super().recv(*arguments)
        except OSError:
            self.over.set()
            raise
        if not data:
            self.over.set()
        self._heard = time.monotonic()
        return data

    def silent_for(self) -> float:
        """For how long (s) nothing has come; what has come and is not read yet counts as now."""
        if not NO_WAIT:
            return 0.0
        with suppress(BlockingIOError):
            self.recv_into(bytearray(1), 1, socket.MSG_PEEK | NO_WAIT)
            self._heard = time.monotonic()
        return time.monotonic() - self._heard

    def hang_up(self) -> None:
        """End it, whoever reads or writes."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)
        self.over.set()


# debugpy believes that it listens: what it takes for its listening socket is a `Source`, whose
# `accept` gives it one connection after another. So one debugger lives as long as the process, over
# all its connections; a `debugpy.connect` is over for good with its connection (measured: no
# breakpoint hits afterwards).
class Source(ABC):
    """In debugpy's eyes a socket that listens.

    `ready`: debugpy is set up for a debugger, so `accept` may return.
    """

    def __init__(self) -> None:
        self.ready = threading.Event()
        self._closed = threading.Event()
        self._connection: Connection | None = None
        self._silence = 0.0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_forked_child)

    @abstractmethod
    def getsockname(self) -> tuple[str, int]:
        """The address by which debugpy knows itself."""

    @abstractmethod
    def next_connection(self) -> Connection:
        """Wait for the next debugger. Raises OSError once there will be no other."""

    def listen(self, backlog: int) -> None:
        """Called by debugpy before each `accept`."""
        del backlog

    def close(self) -> None:
        """The process ends."""
        self._closed.set()
        if self._connection is not None:
            self._connection.over.set()

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """See the last debugger out, and wait for the next.

        Runs in a thread of debugpy's own, which calls it again as soon as it has set up a
        connection.
        """
        if self._connection is not None:
            _tell_when_nobody_reads(self._connection)
            self._wait_for_the_end_of(self._connection)
            if not self._closed.is_set():
                _run_on()
                self._connection.close()
                self.released()
        self.ready.wait()
        try:
            self._connection = self.next_connection()
        except OSError:
            self._closed.wait()  # debugpy would ask again at once
            raise
        return self._connection, self.getsockname()

    def allow_silence(self, seconds: object) -> None:
        """Run on where the debugger has sent nothing for so long; 0: never.

        A session that is stopped or hangs is silent: its system goes on acknowledging, and answers
        the probes of `keep_alive`.
        """
        allowed = isinstance(seconds, (int, float)) and seconds >= SHORTEST_SILENCE_S
        self._silence = float(str(seconds)) if allowed else 0.0

    def _wait_for_the_end_of(self, connection: Connection) -> None:
        while not connection.over.wait(CHECK_INTERVAL_S):
            with suppress(OSError):  # whoever reads meets it, too
                if self._silence and connection.silent_for() > self._silence:
                    connection.hang_up()
        self._silence = 0.0

    def released(self) -> None:
        """The last debugger is gone, and the program runs on."""
        return

    def _in_forked_child(self) -> None:
        """A child that outlives us must not keep our connection open."""
        if self._connection is not None:
            with suppress(OSError):  # whoever forked may have closed all files of the child
                os.close(self._connection.detach())
            self._connection = None


# debugpy's private matters: where they have changed, `listen_to` fails with a message.
def listen_to(source: Source, address: tuple[str, int]) -> None:
    """Start debugpy with `source` for its listening socket. Raises `CannotListen`."""
    import_module("debugpy.server.api")  # it brings pydevd
    pydevd = sys.modules["pydevd"]
    if not hasattr(pydevd, "create_server_socket"):
        raise CannotListen("debugpy has changed: it has no create_server_socket")
    with _replaced(pydevd, "create_server_socket", lambda host, port: source), _undescribed():
        debugpy.configure(subProcess=False)
        debugpy.listen(address, in_process_debug_adapter=True)  # noqa: T100
    _pause_all_threads()
    _log_no_broken_messages()
    _learn_allowed_silence(source)


def start_hidden(target: Callable[..., object], *arguments: object, name: str) -> None:
    """Start a thread of ours, of which debugpy neither stops nor shows anything."""
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    vars(thread)["pydev_do_not_trace"] = vars(thread)["is_pydev_daemon_thread"] = True
    thread.start()


def command_processor() -> Any:
    """Return the class that handles a debugger's requests."""
    module = import_module("_pydevd_bundle.pydevd_process_net_command_json")
    return module.PyDevJsonCommandProcessor


def the_debugger() -> Any:
    """Return pydevd's debugger, a PyDB."""
    return sys.modules["pydevd"].get_global_debugger()


def _undescribed() -> AbstractContextManager[None]:
    """Keep debugpy from describing the environment where it keeps no log.

    It reads the metadata of each installed package for that: 0.2 s of CPU time with 57 of them.
    Private interface of debugpy: where it has changed, the rank starts more slowly.
    """
    log: Any = sys.modules.get("debugpy.common.log")
    try:
        keeps_log = log.log_dir is not None or "info" in log.stderr.levels
    except AttributeError:
        keeps_log = True
    if keeps_log or not hasattr(log, "describe_environment"):
        return nullcontext()
    return _replaced(log, "describe_environment", lambda header: None)


@contextmanager
def _replaced(module: Any, name: str, function: Callable[..., object]) -> Iterator[None]:
    """Have another function in a module for a while."""
    usual = getattr(module, name)
    setattr(module, name, function)
    try:
        yield
    finally:
        setattr(module, name, usual)


def _tell_when_nobody_reads(connection: Connection) -> None:
    """The thread that reads also ends by itself, of a message that it cannot stand (measured)."""
    with suppress(Exception):
        reader = the_debugger().reader
        reader._terminate_on_socket_close = connection.over.set  # noqa: SLF001
        if not reader.is_alive():
            connection.over.set()


def _run_on() -> None:
    """The debugger is gone, perhaps while we are stopped: no breakpoints any more, and go on.

    debugpy itself does so only after a `disconnect` request.
    """
    with suppress(Exception):
        child_processes.leave_children_alone()
    adapter_keeper.run_on(the_debugger())
    _drop_messages(the_debugger().writer)


def _drop_messages(writer: Any) -> None:
    """Discard queued messages, so that a program that still prints can end with no one reading.

    Where a daemon thread is alive debugpy waits with the end until this queue is empty (measured).
    A new connection has a writer of its own.
    """
    vars(writer).update(add_command=lambda command: None, empty=lambda: True)


def _pause_all_threads() -> None:
    """`pause` means the whole process, as debugpy's adapter asks for it."""
    with suppress(Exception):
        api: Any = sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI
        usual = api.request_suspend_thread
        api.request_suspend_thread = lambda self, debugger, thread_id="*": usual(self, debugger)


def _learn_allowed_silence(source: Source) -> None:
    """A session says at `initialize` how long its ranks wait for it (`engine.ranks.heartbeat`)."""
    with suppress(Exception):
        kind = command_processor()
        initialize = kind.on_initialize_request

        def learn_and_initialize(self: object, debugger: object, request: Any) -> object:
            with suppress(Exception):
                source.allow_silence(request.arguments.kwargs[SESSION].get("silence"))
            return initialize(self, debugger, request)

        kind.on_initialize_request = learn_and_initialize


def _log_no_broken_messages() -> None:
    """Keep errors about a peer's messages out of the program's stderr, but in pydevd's log file."""
    with suppress(Exception):
        log: Any = import_module("_pydev_bundle.pydev_log")
        comm: Any = import_module("_pydevd_bundle.pydevd_comm")
        holder: Any = import_module("_pydevd_bundle.pydevd_constants").DebugInfoHolder
        usual = log.exception

        def log_unless_it_reads(*words: object) -> None:
            if threading.current_thread().name != READER or holder.PYDEVD_DEBUG_FILE:
                usual(*words)

        log.exception = comm.pydev_log_exception = log_unless_it_reads


def keep_alive(connection: Connection | socket.socket) -> None:
    """Send small messages at once, and notice a peer that is gone without a word.

    Without it a rank at a breakpoint stays there when the line to its session is down.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        with suppress(AttributeError, OSError):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
