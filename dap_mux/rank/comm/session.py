"""What a rank's watch on communication tells the session that debugs it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def tell(event: str, body: dict[str, Any]) -> bool:
    """Send an event of our own in debugpy's stream; False where nobody debugs this process.

    Private interfaces of debugpy, so whoever calls this must expect any exception.
    """
    pydevd: Any = sys.modules.get("pydevd")
    debugger = pydevd.get_global_debugger() if pydevd is not None else None
    if debugger is None or debugger.writer is None or not debugger.is_attached():
        return False
    command: Any = import_module("_pydevd_bundle.pydevd_net_command").NetCommand
    said = {"type": "event", "event": event, "body": body}
    debugger.writer.add_command(command(0, 0, said, is_json=True))
    return True
