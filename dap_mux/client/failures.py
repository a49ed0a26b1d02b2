"""What a client's caller has to reckon with, beside running out of time (`TimeoutError`)."""

from __future__ import annotations

from typing import Any

from dap_mux.errors import DapMuxError


class ConnectionLost(DapMuxError):
    """The server closed the connection while something was still owed."""


class RequestFailed(DapMuxError):
    """The server answered `command` with an error; `message` and `body` are its words."""

    def __init__(self, command: str, message: str, body: dict[str, Any]) -> None:
        super().__init__(f"{command}: {message}")
        self.command = command
        self.message = message
        self.body = body
