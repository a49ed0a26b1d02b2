"""Connects to the session, for hosts that cannot be connected to: `DAP_MUX_DIAL=HOST:PORT`."""

from __future__ import annotations

import argparse
import atexit
import hashlib
import hmac
import os
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dap_mux.rank.dap_message import NoMessage, read_message, respond
from dap_mux.rank.debugger_wait import STARTER_CHECK_INTERVAL_S, session_is_gone, session_lost
from dap_mux.rank.environ import Place
from dap_mux.rank.in_process import CannotListen, Connection, Source, keep_alive, listen_to
from dap_mux.rank.listen import prepare_debugger
from dap_mux.rank.options import seconds
from dap_mux.rank.ready import record_of

# A call's first words: both sides show that they know the token, and neither sends it.
#
# Three DAP messages: the session's request with a number used once, our answer with another, our
# proof and who we are, and the session's word that we are taken, with its own proof. A proof is the
# HMAC-SHA256, keyed with the token, of who proves (`rank` or `session`) and both numbers.

GREETING, TAKEN, REFUSED = "dapMuxGreeting", "dapMuxTaken", "dapMuxRefused"


class Refused(Exception):
    """The session refuses this rank; `final`: trying again will not help."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


def introduce(line: socket.socket, token: str, registration: dict[str, object]) -> None:
    """Say who we are to the session at the other end, which shows that it is one.

    Raises `Refused`, ValueError (it is no session of this token) and OSError.
    """
    greeting = _read(line)
    theirs = str(_arguments(greeting, GREETING).get("nonce"))
    ours = secrets.token_hex(16)
    answer = {"nonce": ours, "proof": proof(token, "rank", theirs, ours), "rank": registration}
    respond(line, greeting, answer)
    verdict = _read(line)
    if verdict.get("command") == REFUSED:
        no = _arguments(verdict, REFUSED)
        raise Refused(str(no.get("message")), final=no.get("final") is True)
    shown = str(_arguments(verdict, TAKEN).get("proof"))
    if not hmac.compare_digest(shown.encode(), proof(token, "session", theirs, ours).encode()):
        raise Refused("the peer has a different token", final=True)


def proof(token: str, who: str, theirs: str, ours: str) -> str:
    """The session's number comes first, whoever proves."""
    text = f"dap-mux {who} {theirs} {ours}".encode()
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()


def _arguments(message: dict[str, Any], command: str) -> dict[str, Any]:
    arguments = message.get("arguments")
    if message.get("command") != command or not isinstance(arguments, dict):
        raise ValueError("the peer is not a dap-mux session")
    return arguments


def _read(line: socket.socket) -> dict[str, Any]:
    try:
        return read_message(line)
    except NoMessage:
        raise ValueError("the peer is not a dap-mux session") from None


ADDRESS = "DAP_MUX_DIAL"
TOKEN = "DAP_MUX_DIAL_TOKEN"  # noqa: S105  (a variable's name)
TOKEN_FILE = "DAP_MUX_DIAL_TOKEN_FILE"  # noqa: S105
TIMEOUT = "DAP_MUX_DIAL_TIMEOUT"
FIRST_CALL_TIMEOUT_S = 60.0  # to wait for a session that starts after its ranks
CONNECT_TIMEOUT_S = 10.0
BACKOFF_MIN_S, BACKOFF_MAX_S = 0.25, 10.0  # s
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


def dial(place: Place, target: Target, traits: Mapping[str, object]) -> tuple[str, int]:
    """Start debugpy, and return the session's address once it has accepted the connection.

    Raises `CannotDial` if it does not within `target.timeout` seconds, or refuses.
    """
    line = Line(place, target, traits)
    try:
        listen_to(line, (target.host, target.port))
    except CannotListen as error:
        raise CannotDial(f"{error}; let this rank listen instead") from None
    prepare_debugger()
    line.ready.set()
    # Before debugpy's own, which tells the session that the process ends: it hangs up then.
    atexit.register(line.give_up)
    until = time.monotonic() + target.timeout
    while not line.settled.wait(STARTER_CHECK_INTERVAL_S):
        if session_is_gone():  # whoever is to wait for it will not
            return target.host, target.port
        if time.monotonic() < until:
            continue
        line.give_up()
        raise CannotDial(f"no session at {target} within {target.timeout:g} s: {line.problem}")
    if line.problem:
        raise CannotDial(line.problem)
    return target.host, target.port


# The session plays the part of debugpy's adapter, so there is no adapter process and no port here.
# Both sides prove that they know the session's token before anything else is said; the token itself
# is never sent. When the connection ends the program runs on, and the session is called again.
class Line(Source):
    """Each of its connections is a call of ours.

    `settled`: the first call has come to an end, good or (`problem`) bad.
    """

    def __init__(self, place: Place, target: Target, traits: Mapping[str, object]) -> None:
        super().__init__()
        self.settled = threading.Event()
        self.problem = ""
        self._place = place
        self._target = target
        self._traits = traits
        self._given_up = threading.Event()

    def getsockname(self) -> tuple[str, int]:
        """The session's address."""
        return self._target.host, self._target.port

    def give_up(self) -> None:
        """Stop connecting to the session."""
        self._given_up.set()

    def close(self) -> None:
        """The process ends."""
        self._given_up.set()
        super().close()

    def next_connection(self) -> Connection:
        """Call until the session takes the call."""
        pause = BACKOFF_MIN_S
        while not self._given_up.is_set():
            try:
                connection = _call(self._target, self._registration())
            except Refused as refused:
                self._failed(str(refused), final=refused.final)
            except (OSError, ValueError) as error:
                self._failed(str(error), final=False)
            else:
                self.problem = ""
                session_lost.clear()
                self.settled.set()
                return connection
            self._given_up.wait(pause)
            pause = min(2 * pause, BACKOFF_MAX_S)
        raise OSError("closed")

    def _failed(self, problem: str, *, final: bool) -> None:
        if self.settled.is_set():
            session_lost.set()
            return
        self.problem = problem
        if final:
            self.give_up()
            self.settled.set()

    def _registration(self) -> dict[str, object]:
        record = record_of(self._place, socket.gethostname(), 0, self._traits)
        return {**record, "port": None}


def _call(target: Target, registration: dict[str, object]) -> Connection:
    """One call. Raises OSError, ValueError (it is no session) and `Refused`."""
    plain = socket.create_connection((target.host, target.port), CONNECT_TIMEOUT_S)
    try:
        keep_alive(plain)
        introduce(plain, target.token, registration)
        plain.settimeout(None)
    except BaseException:
        plain.close()
        raise
    return Connection(plain)
