"""Tell the client that the program is over, before debugpy says so of the debugging.

debugpy's `terminated` says that it has lost the process or its own thread in there, and not which:
a bad message that ends pydevd's reader looks the same as the end of the program (measured). What is
said here comes first where the main thread has ended. It goes out as telemetry, which editors do
not show.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any


def announce_end(debugger: Any, text: str) -> None:
    """From now on `debugger`, a PyDB, announces the end of the program by an event with `text`."""
    name = "dispose_and_kill_all_pydevd_threads"
    if name in vars(debugger):
        return
    dispose = getattr(debugger, name)
    command = type(debugger.cmd_factory.make_thread_killed_message(1))

    def tell_and_dispose(*arguments: Any, **named: Any) -> Any:
        with suppress(Exception):
            if not threading.main_thread().is_alive():
                body = {"category": "telemetry", "output": text}
                event = {"type": "event", "event": "output", "body": body}
                debugger.writer.add_command(command(0, 0, event, is_json=True))
        return dispose(*arguments, **named)

    setattr(debugger, name, tell_and_dispose)
