"""debugpy's adapter, which survives clients whose connection breaks.

The program of the process that `adapter_keeper` starts; otherwise it is what `debugpy.listen`
starts. debugpy's own ends, or accepts nobody any more, when it writes to a client that has gone
(measured): an answer to `evaluate`, the event `initialized`, the greeting of a new client while the
last one still takes its leave.
"""

from __future__ import annotations

import locale
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

CLIENT_TIMEOUT_MS = 12_000
"""Of a client that acknowledges nothing: as long as a session waits for a rank's word. Without it
the kernel tries for a quarter of an hour, and whoever comes meanwhile is told that the process is
already being debugged."""


def survive_broken_clients() -> None:
    """What cannot be written to a client is dropped: the end of its connection is noticed anyway.

    But for requests, whose senders would wait for an answer.
    """
    stream: Any = import_module("debugpy.common.messaging").JsonIOStream
    sockets: Any = import_module("debugpy.common.sockets")
    write, serve = stream.write_json, sockets.serve

    def write_unless_gone(self: Any, value: Any, encoder: Any = None) -> None:
        try:
            write(self, value, encoder)
        except Exception:
            if not str(self.name).startswith("Client[") or value.get("type") == "request":
                raise

    def serve_for_ever(name: str, handler: Any, *arguments: Any, **named: Any) -> Any:
        def handle(sock: Any) -> None:
            with suppress(AttributeError, OSError):  # Linux has it
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, CLIENT_TIMEOUT_MS)
            with suppress(Exception):  # else nobody is accepted any more
                handler(sock)

        return serve(name, handle, *arguments, **named)

    stream.write_json = write_unless_gone
    sockets.serve = serve_for_ever


def run(parent: str) -> None:
    """Be the adapter until the rank has ended. `parent`: the folder that debugpy is in."""
    sys.path.insert(0, parent)
    try:
        import_module("debugpy")
    finally:
        del sys.path[0]
    survive_broken_clients()
    with suppress(Exception):
        locale.setlocale(locale.LC_ALL, "")
    import_module("debugpy.adapter.__main__").main()
