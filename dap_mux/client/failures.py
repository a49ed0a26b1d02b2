"""The errors that a client raises, apart from `TimeoutError`."""

from __future__ import annotations

from typing import Any

from dap_mux.errors import DapMuxError


class ConnectionLost(DapMuxError):
    """The server closed the connection before it had answered everything."""


class RequestFailed(DapMuxError):
    """The server answered `command` with an error, whose `message` and `body` these are."""

    def __init__(self, command: str, message: str, body: dict[str, Any]) -> None:
        super().__init__(f"{command}: {message}")
        self.command = command
        self.message = message
        self.body = body
