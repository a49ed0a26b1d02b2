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

from dap_mux.injected.pydevd_patches import MADE_UP
from dap_mux.injected.tracing import untraced

# Marks on an exception: the debugger has let it go on; it has gone without a word.
SHOWN, ABANDONED = "__dap_mux_shown__", "__dap_mux_abandoned__"


class _Stop:
    """One stop at an exception that debugpy is in."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self.abandoned = False


_stops: list[_Stop] = []


def stop_at(error: BaseException, trace: TracebackType) -> bool:
    """Stop this thread at an exception that has left it, until the debugger lets it run on.

    False where the debugger has gone without a word, as it does when a tunnel breaks.
    """
    debugger = _debugger()
    thread = threading.current_thread()
    info = debugger.set_additional_thread_info(thread)
    kind = type(error)
    info.pydev_message = f"{kind.__module__}.{kind.__qualname__}"
    frame = _frame_to_show(debugger, trace)
    vars(error).pop(ABANDONED, None)
    with untraced(debugger):  # it has not begun in a callback of its tracer
        debugger.do_stop_on_unhandled_exception(thread, frame, None, (kind, error, trace))
    return ABANDONED not in vars(error)


def note_what_is_shown() -> None:
    """Mark every exception that debugpy stops for as uncaught, from now on: once is enough.

    Unless the debugger goes while it stands there. debugpy then lets the thread run on, as it
    does at `continue`; only as it hears of either can they be told apart.
    """
    with suppress(Exception):
        debugger = _debugger()
        stop = debugger.do_stop_on_unhandled_exception

        def stop_and_mark(thread: Any, frame: object, frames: object, raised: Any) -> None:
            this = _Stop(thread.additional_info)
            _stops.append(this)
            try:
                stop(thread, frame, frames, raised)
            finally:
                _stops.remove(this)
                with suppress(Exception):
                    vars(raised[1])[ABANDONED if this.abandoned else SHOWN] = True

        debugger.do_stop_on_unhandled_exception = stop_and_mark
        _note_who_is_abandoned()


def _note_who_is_abandoned() -> None:
    api = sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI
    suspended = sys.modules["_pydevd_bundle.pydevd_constants"].STATE_SUSPEND
    disconnect = api.request_disconnect

    def note_and_disconnect(self: object, *rest: object, **named: object) -> object:
        for each in _stops:
            # `continue` has changed the state. So has the first call where the adapter's
            # `disconnect` and the end of its connection are two, and the thread is yet to wake.
            each.abandoned |= each.info.pydev_state == suspended
        return disconnect(self, *rest, **named)

    api.request_disconnect = note_and_disconnect


def was_shown(error: BaseException) -> bool:
    """Whether debugpy has stopped for it as uncaught, and was told to let it run on.

    Or it has stopped where it was raised, in the process that its traceback was copied from.
    """
    if SHOWN in getattr(error, "__dict__", ()):
        return True
    copied = any(MADE_UP in each.tb_frame.f_code.co_names for each in entries(error.__traceback__))
    return copied and bool(_debugger().break_on_user_uncaught_exceptions)


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
