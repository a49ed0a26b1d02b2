"""What a rank's watch on communication tells the session that debugs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import Any

from dap_mux.rank import environ
from dap_mux.rank.ready import say

TRACING = "dap_mux.rank.injected.attach.tracing"


def log(text: str) -> None:
    """Say something of this rank to the user."""
    say(environ.place_of(os.environ), text)


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

    Clients show the exception's `__qualname__`.
    """
    kinds: Any = import_module("_pydevd_bundle.pydevd_constants")
    handle = import_module("_pydevd_bundle.pydevd_trace_dispatch").handle_exception
    trace = TracebackType(None, frame, frame.f_lasti, frame.f_lineno)
    raised = (type(error), error, trace)
    with _suspending() as (debugger, thread, info):
        info.pydev_message = type(error).__qualname__
        import_module("_pydevd_bundle.pydevd_frame_utils").add_exception_to_frame(frame, raised)
        handle(debugger, thread, frame, raised, kinds.EXCEPTION_TYPE_HANDLED)


def suspend_as_at_breakpoint(frame: Any) -> None:
    """Suspend this thread as at a breakpoint in a frame, until the debugger continues it."""
    reason = import_module("_pydevd_bundle.pydevd_comm_constants").CMD_SET_BREAK
    with _suspending() as (debugger, thread, _):
        debugger.set_suspend(thread, reason)
        debugger.do_wait_suspend(thread, frame, "line", None)
        debugger.set_trace_for_frame_and_parents(thread.ident, frame)


@contextmanager
def _suspending() -> Iterator[tuple[Any, threading.Thread, Any]]:
    """Yield the debugger, this thread and what the debugger knows of it.

    Private interfaces of debugpy: `debugpy.breakpoint()` would stop at the next line only, where
    the call that is looked at is over.
    """
    tracing: Any = import_module(TRACING)
    debugger: Any = sys.modules["pydevd"].get_global_debugger()
    thread = threading.current_thread()
    info = debugger.set_additional_thread_info(thread)
    with tracing.untraced(debugger):
        yield debugger, thread, info
