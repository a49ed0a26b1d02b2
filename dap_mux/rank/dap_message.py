"""Reads the first message of a connection."""

from __future__ import annotations

import json
import socket
from typing import Any

MAX_MESSAGE = 64 * 1024  # bytes of one message
MAX_DIGITS = 12  # of its length, as in protocol/messages


class NoMessage(ValueError):
    """The peer sent something other than a message of the Debug Adapter Protocol."""


def read_message(connection: socket.socket) -> dict[str, Any]:
    """Return the object in one message; no byte of what comes behind it is read.

    Raises `NoMessage` and OSError.
    """
    data = b""
    while (rest := missing(data)) != 0:
        some = connection.recv(1 if rest is None else rest)
        if not some:
            raise ConnectionError("the connection was closed")
        data += some
    return message_in(data)


def missing(data: bytes) -> int | None:
    """Return how many bytes of the first message are still to come; None: its length is, too.

    Raises `NoMessage` as soon as no message begins so.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if not b"content-length:".startswith(data[:15].lower()) or len(data) > MAX_MESSAGE:
            raise NoMessage("it does not begin with Content-Length")
        return None
    return max(0, _end(data, end) - len(data))


def message_in(data: bytes) -> dict[str, Any]:
    """Return the object in the whole message that `data` begins with. Raises `NoMessage`."""
    end = data.find(b"\r\n\r\n")
    try:
        message = json.loads(data[end + 4 : _end(data, end)])
    except (ValueError, RecursionError) as error:
        raise NoMessage(f"it is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise NoMessage("it is not an object")
    return message


def _end(data: bytes, end: int) -> int:
    """Return where the message ends whose head ends at `end`."""
    if data[:15].lower() != b"content-length:":
        raise NoMessage("it does not begin with Content-Length")
    length = data[:end].split(b"\r\n", 1)[0].partition(b":")[2].strip()
    # Python refuses to read a number of more than 4,300 digits, by a ValueError of its own.
    if not length.isdigit() or len(length) > MAX_DIGITS or int(length) > MAX_MESSAGE:
        raise NoMessage("its length is none, or too large")
    return end + 4 + int(length)


def write_message(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one message. Raises OSError."""
    data = json.dumps(message).encode()
    connection.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))


def respond(
    connection: socket.socket, request: dict[str, Any], body: object, refusal: str = ""
) -> None:
    """Answer a request, or refuse it. Raises OSError."""
    response: dict[str, Any] = {
        "seq": 1,
        "type": "response",
        "request_seq": request.get("seq"),
        "success": not refusal,
        "command": request.get("command"),
        "body": body,
    }
    write_message(connection, {**response, "message": refusal} if refusal else response)
