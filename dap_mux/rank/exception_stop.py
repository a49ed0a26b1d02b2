"""Stop at an exception in the debugger that is attached, and know of its own such stops.

Private interface of debugpy: its public `trigger_exception_handler` is newer than the debugpy
of many images, and stops in the innermost frame, be that in a library.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType, SimpleNamespace, TracebackType
from typing import Any

SHOWN = "__dap_mux_shown__"


def stop_at(error: BaseException, trace: TracebackType) -> None:
    """Stop this thread at an exception that has left it, until the debugger lets it run on."""
    debugger = _debugger()
    thread = threading.current_thread()
    info = debugger.set_additional_thread_info(thread)
    kind = type(error)
    info.pydev_message = f"{kind.__module__}.{kind.__qualname__}"
    frame = _frame_to_show(debugger, trace)
    info.is_tracing += 1
    try:
        debugger.do_stop_on_unhandled_exception(thread, frame, None, (kind, error, trace))
    finally:
        info.is_tracing -= 1


def note_what_is_shown() -> None:
    """Mark every exception that debugpy stops for as uncaught, from now on: once is enough."""
    with suppress(Exception):
        debugger = _debugger()
        stop = debugger.do_stop_on_unhandled_exception

        def stop_and_mark(thread: object, frame: object, frames: object, raised: Any) -> None:
            try:
                stop(thread, frame, frames, raised)
            finally:
                with suppress(Exception):
                    vars(raised[1])[SHOWN] = True

        debugger.do_stop_on_unhandled_exception = stop_and_mark


def was_shown(error: BaseException) -> bool:
    """Whether debugpy has stopped for it as uncaught."""
    return SHOWN in getattr(error, "__dict__", ())


def entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback, outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _debugger() -> Any:
    return sys.modules["pydevd"].get_global_debugger()


def _frame_to_show(debugger: Any, trace: TracebackType) -> FrameType:
    """The innermost frame of the user's code, as debugpy's own filter chooses it."""
    by_my_code_alone = SimpleNamespace(ignore_libraries=False)
    found = list(entries(trace))
    theirs = [
        each.tb_frame
        for each in found
        if debugger.get_file_type(each.tb_frame) != debugger.PYDEV_FILE
        and not debugger.exclude_exception_by_filter(by_my_code_alone, each)
    ]
    return theirs[-1] if theirs else found[-1].tb_frame
