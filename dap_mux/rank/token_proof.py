"""A call's first words: both sides show that they know the token, and neither sends it.

Three DAP messages: the session's request with a number used once, our answer with another, our
proof and who we are, and the session's word that we are taken, with its own proof. A proof is
the HMAC-SHA256, keyed with the token, of who proves (`rank` or `session`) and both numbers.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from collections.abc import Mapping
from typing import Any

from dap_mux.rank.dap_message import NoMessage, read_message, write_message

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
    _answer(line, greeting, answer)
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


def _answer(line: socket.socket, request: dict[str, Any], body: Mapping[str, object]) -> None:
    answer = {
        "seq": 1,
        "type": "response",
        "request_seq": request.get("seq"),
        "success": True,
        "command": request.get("command"),
        "body": body,
    }
    write_message(line, answer)


def _read(line: socket.socket) -> dict[str, Any]:
    try:
        return read_message(line)[1]
    except NoMessage:
        raise ValueError("the peer is not a dap-mux session") from None
