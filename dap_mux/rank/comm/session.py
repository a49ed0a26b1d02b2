"""What a rank's watch on communication tells the session that debugs it."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import TracebackType
from typing import Any

TRACING = "dap_mux.rank.injected.attach.tracing"


def debugger_of_session() -> Any:
    """Return debugpy's debugger, None where nobody debugs this process."""
    pydevd: Any = sys.modules.get("pydevd")
    debugger = pydevd.get_global_debugger() if pydevd is not None else None
    if debugger is None or debugger.writer is None or not debugger.is_attached():
        return None
    return debugger


def tell(event: str, body: dict[str, Any]) -> bool:
    """Send an event of our own in debugpy's stream; False where nobody debugs this process.

    Private interfaces of debugpy, so whoever calls this must expect any exception.
    """
    debugger = debugger_of_session()
    if debugger is None:
        return False
    command: Any = import_module("_pydevd_bundle.pydevd_net_command").NetCommand
    said = {"type": "event", "event": event, "body": body}
    debugger.writer.add_command(command(0, 0, said, is_json=True))
    return True


def suspend(frame: Any, error: Exception) -> None:
    """Suspend this thread as at an exception raised in a frame, until the debugger continues it.

    Clients show the exception's `__qualname__`. Private interfaces of debugpy;
    `debugpy.breakpoint()` would stop at the next line only.
    """
    tracing: Any = import_module(TRACING)
    debugger: Any = sys.modules["pydevd"].get_global_debugger()
    kinds: Any = import_module("_pydevd_bundle.pydevd_constants")
    handle = import_module("_pydevd_bundle.pydevd_trace_dispatch").handle_exception
    trace = TracebackType(None, frame, frame.f_lasti, frame.f_lineno)
    thread = threading.current_thread()
    info = debugger.set_additional_thread_info(thread)
    info.pydev_message = type(error).__qualname__
    raised = (type(error), error, trace)
    import_module("_pydevd_bundle.pydevd_frame_utils").add_exception_to_frame(frame, raised)
    with tracing.untraced(debugger):
        handle(debugger, thread, frame, raised, kinds.EXCEPTION_TYPE_HANDLED)
