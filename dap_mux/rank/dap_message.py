"""Reads the first message of a connection, and no byte of what comes behind it."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

MAX_MESSAGE = 64 * 1024  # bytes of one message
MAX_HEADER = 256  # bytes


class NoMessage(ValueError):
    """What the peer sends is no message of the Debug Adapter Protocol."""


def read_message(
    connection: socket.socket, limit: float | None = None
) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of one message, and the object in it.

    `limit`: seconds for the whole of it; None: as long as the socket's own timeout allows at
    each read. Raises `NoMessage` and OSError.
    """
    until = None if limit is None else time.monotonic() + limit
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += _some(connection, 1, until)
        if len(head) > MAX_HEADER or not b"content-length:".startswith(head[:15].lower()):
            raise NoMessage("it does not begin with Content-Length")
    length = head.split(b"\r\n", 1)[0].partition(b":")[2]
    if not length.strip().isdigit() or int(length) > MAX_MESSAGE:
        raise NoMessage("its length is none, or too large")
    body = b""
    while len(body) < int(length):
        body += _some(connection, int(length) - len(body), until)
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NoMessage(f"it is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise NoMessage("it is not an object")
    return head + body, message


def write_message(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one message. Raises OSError."""
    data = json.dumps(message).encode()
    connection.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))


def _some(connection: socket.socket, most: int, until: float | None) -> bytes:
    if until is not None:
        connection.settimeout(max(until - time.monotonic(), 0.001))
    data = connection.recv(most)
    if not data:
        raise ConnectionError("the connection was closed")
    return data
