"""Connects to the session, for hosts that cannot be connected to: `DAP_MUX_DIAL=HOST:PORT`.

The session plays the part of debugpy's adapter, so there is no adapter process and no port here.
debugpy believes that it listens: what it takes for its listening socket is a `Line`, whose
`accept` makes the call. So one debugger lives as long as the process, over all its calls; a
`debugpy.connect` is over for good with its connection (measured: no breakpoint hits afterwards).

Both sides prove that they know the session's token before anything else is said; the token itself
is never sent. When the connection ends the program runs on, and the session is called again.
"""

from __future__ import annotations

import argparse
import atexit
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import debugpy  # noqa: T100

from dap_mux.rank.debugger_wait import note_debugger_visits
from dap_mux.rank.environ import Place
from dap_mux.rank.listen import CannotListen, speed_up
from dap_mux.rank.options import seconds
from dap_mux.rank.ready import record_of
from dap_mux.rank.token_proof import Refused, introduce

ADDRESS = "DAP_MUX_DIAL"
TOKEN = "DAP_MUX_DIAL_TOKEN"  # noqa: S105  (a variable's name)
TOKEN_FILE = "DAP_MUX_DIAL_TOKEN_FILE"  # noqa: S105
TIMEOUT = "DAP_MUX_DIAL_TIMEOUT"
FIRST_CALL_TIMEOUT_S = 60.0  # to wait for a session that starts after its ranks
CONNECT_TIMEOUT_S = 10.0
BACKOFF_MIN_S, BACKOFF_MAX_S = 0.25, 10.0  # s
KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 4), ("TCP_KEEPCNT", 3))
_HOST_PORT = re.compile(r"(?:\[([^\]]+)\]|([^:\s\[\]]+)):([0-9]{1,5})")


class CannotDial(CannotListen):
    """The session was not reached, or refused this rank; the message says why."""


@dataclass(frozen=True)
class Target:
    """The address to connect to, and the token to prove."""

    host: str
    port: int
    token: str = field(repr=False)
    timeout: float = FIRST_CALL_TIMEOUT_S

    def __str__(self) -> str:
        """`host:port`, with brackets around an IPv6 host."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target_of(environ: Mapping[str, str]) -> Target | None:
    """Return the target that the variables name, if any. Raises `CannotDial`."""
    text = environ.get(ADDRESS)
    if not text:
        return None
    match = _HOST_PORT.fullmatch(text)
    if match is None or not 0 < int(match[3]) <= 65535:
        raise CannotDial(f"{ADDRESS}={text!r} is not HOST:PORT")
    return Target(match[1] or match[2], int(match[3]), _token_of(environ), _limit_of(environ))


def _limit_of(environ: Mapping[str, str]) -> float:
    text = environ.get(TIMEOUT) or str(FIRST_CALL_TIMEOUT_S)
    try:
        return seconds(text)
    except argparse.ArgumentTypeError as error:
        raise CannotDial(f"{TIMEOUT}: {error}") from None


def _token_of(environ: Mapping[str, str]) -> str:
    path = environ.get(TOKEN_FILE)
    if not path:
        token = environ.get(TOKEN, "").strip()
        if not token:
            raise CannotDial(f"{ADDRESS} needs the session's token: {TOKEN_FILE} or {TOKEN}")
        return token
    try:
        with Path(path).open(encoding="ascii") as file:
            if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & 0o007:
                raise CannotDial(f"other users can read the token file {path}: chmod 600 it")
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotDial(f"cannot read the token file {path}: {error}") from None
    if not token:
        raise CannotDial(f"the token file {path} is empty")
    return token


def dial(place: Place, target: Target) -> tuple[str, int]:
    """Start debugpy, and return the session's address once it has accepted the connection.

    Raises `CannotDial` if it does not within `target.timeout` seconds, or refuses.
    """
    import_module("debugpy.server.api")  # it brings pydevd
    debugpy.configure(subProcess=False)
    line = Line(place, target)
    with _listening_on(line):
        debugpy.listen((target.host, target.port), in_process_debug_adapter=True)  # noqa: T100
    _pause_all_threads()
    note_debugger_visits()
    speed_up()
    line.may_call.set()
    # Before debugpy's own, which tells the session that the process ends: it hangs up then.
    atexit.register(line.give_up)
    if not line.settled.wait(target.timeout):
        line.give_up()
        raise CannotDial(f"no session at {target} within {target.timeout:g} s: {line.problem}")
    if line.problem:
        raise CannotDial(line.problem)
    return target.host, target.port


class _Link(socket.socket):
    """A connection that says when its peer is gone."""

    def __init__(self, plain: socket.socket) -> None:
        super().__init__(plain.family, plain.type, plain.proto, fileno=plain.detach())
        self.over = threading.Event()

    def recv(self, *arguments: int) -> bytes:
        """As ever; but who waits for the end hears of it."""
        try:
            data = super().recv(*arguments)
        except OSError:
            self.over.set()
            raise
        if not data:
            self.over.set()
        return data


class Line:
    """In debugpy's eyes a socket that listens; each `accept` is a call of ours.

    `may_call`: debugpy is set up for a session. `settled`: the first call has come to an end,
    good or (`problem`) bad. Runs in a thread of debugpy's own, which calls `accept` again as soon
    as it has set up a connection.
    """

    def __init__(self, place: Place, target: Target) -> None:
        self.may_call = threading.Event()
        self.settled = threading.Event()
        self.problem = ""
        self._place = place
        self._target = target
        self._given_up = threading.Event()
        self._closed = threading.Event()
        self._link: _Link | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_forked_child)

    def _in_forked_child(self) -> None:
        """A child that outlives us must not keep our connection open."""
        if self._link is not None:
            os.close(self._link.detach())
            self._link = None

    def getsockname(self) -> tuple[str, int]:
        """The session's address."""
        return self._target.host, self._target.port

    def listen(self, backlog: int) -> None:
        """Nothing to do."""

    def give_up(self) -> None:
        """Nobody is called any more."""
        self._given_up.set()

    def close(self) -> None:
        """The process ends."""
        self._given_up.set()
        self._closed.set()
        if self._link is not None:
            self._link.over.set()

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Call until the session takes the call; before that, see the last one out."""
        if self._link is not None:
            self._link.over.wait()
            if not self._closed.is_set():
                _run_on()
                self._link.close()
        pause = BACKOFF_MIN_S
        self.may_call.wait()
        while not self._given_up.is_set():
            try:
                self._link = _call(self._target, self._registration())
            except Refused as refused:
                self._failed(str(refused), final=refused.final)
            except (OSError, ValueError) as error:
                self._failed(str(error), final=False)
            else:
                self.problem = ""
                self.settled.set()
                return self._link, self.getsockname()
            self._given_up.wait(pause)
            pause = min(2 * pause, BACKOFF_MAX_S)
        self._closed.wait()  # debugpy would ask again at once
        raise OSError("closed")

    def _failed(self, problem: str, *, final: bool) -> None:
        if self.settled.is_set():
            return
        self.problem = problem
        if final:
            self.give_up()
            self.settled.set()

    def _registration(self) -> dict[str, object]:
        return {**record_of(self._place, socket.gethostname(), 0), "port": None}


def _call(target: Target, registration: dict[str, object]) -> _Link:
    """One call. Raises OSError, ValueError (it is no session) and `Refused`."""
    plain = socket.create_connection((target.host, target.port), CONNECT_TIMEOUT_S)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE:
            with suppress(AttributeError, OSError):
                plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        introduce(plain, target.token, registration)
        plain.settimeout(None)
    except BaseException:
        plain.close()
        raise
    return _Link(plain)


# debugpy's private matters: where they have changed, `dial` fails with a message.


@contextmanager
def _listening_on(line: Line) -> Iterator[None]:
    pydevd = sys.modules["pydevd"]
    try:
        usual = pydevd.create_server_socket
    except AttributeError:
        raise CannotDial("this release of debugpy cannot dial out; let it listen instead") from None
    vars(pydevd)["create_server_socket"] = lambda host, port: line
    try:
        yield
    finally:
        vars(pydevd)["create_server_socket"] = usual


def _run_on() -> None:
    """The session is gone, perhaps while we are stopped: no breakpoints any more, and go on.

    What debugpy does about `disconnect`; nothing but a `disconnect` makes it do so here.
    """
    debugger = sys.modules["pydevd"].get_global_debugger()
    api = sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI()
    with debugger._main_lock:  # noqa: SLF001
        debugger.enable_output_redirection(False, False)
        api.request_disconnect(debugger, resume_threads=True)


def _pause_all_threads() -> None:
    """`pause` means the whole process, as debugpy's adapter asks for it."""
    with suppress(Exception):
        api: Any = sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI
        usual = api.request_suspend_thread
        api.request_suspend_thread = lambda self, debugger, thread_id="*": usual(self, debugger)
