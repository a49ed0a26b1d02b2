"""Hold a rank at an uncaught exception, so that somebody can look before the launcher kills all.

Python tells its audit hooks of an exception that is about to end the program, before
`sys.excepthook` runs: whatever program or library replaces that hook (some call `MPI_Abort` in
it), and whatever filters a debugger has set. By then the program's frames are left, and kept by
the traceback: as in `pdb.post_mortem`, values can be read, and the only way is on to the end.

Held is what ends the process: an exception that leaves the main thread. SystemExit and
KeyboardInterrupt are somebody's wish. An exception in another thread ends that thread alone, so
nothing is about to be lost; a debugger's own filter for uncaught exceptions stops there, too.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from inspect import currentframe
from pathlib import Path
from types import FrameType, SimpleNamespace, TracebackType
from typing import Any

import debugpy  # noqa: T100

from dap_mux.rank.environ import Place
from dap_mux.rank.hide import users_part
from dap_mux.rank.hold import wait_for_debugger
from dap_mux.rank.ready import say

VARIABLE = "DAP_MUX_POST_MORTEM"
DEFAULT_LIMIT = 300.0
"""Seconds. Shorter than what collectives of the other ranks wait (gloo 30 min, NCCL 10 min)."""
SHOWN = "__dap_mux_shown__"
LONGEST_TEXT = 200
WORDS: dict[str, float | None] = {
    "off": None,
    "no": None,
    "on": DEFAULT_LIMIT,
    "yes": DEFAULT_LIMIT,
}


def limit_of(environ: Mapping[str, str], default: float | None) -> float | None:
    """How long a rank waits for a debugger at its end: seconds, or None for "do not hold".

    0 seconds: shown to a debugger that is attached already, waiting for none. Raises ValueError.
    """
    text = environ.get(VARIABLE, "").strip().lower()
    if not text:
        return default
    if text in WORDS:
        return WORDS[text]
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{VARIABLE}={text}: give a number of seconds, `on` or `off`")
    return seconds


def arm(place: Place, limit: float, address: str) -> None:
    """From now on, hold this process at an uncaught exception. Call it once, debugpy running.

    `address` is where a debugger can attach; `limit` is as `limit_of` gives it.
    """
    pid = os.getpid()
    with suppress(Exception):
        _note_what_debugpy_shows()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # Called for every import, open file and so on: the first comparison is what it costs.
        if event != "sys.excepthook" or os.getpid() != pid:  # a forked child is no rank
            return
        _, _, error, trace = arguments
        trace, below = users_part(trace), currentframe()
        if trace is None or _was_shown(error):
            return  # a syntax error in the program has no frames
        if not _ends_the_process(error, below and below.f_back):
            return
        try:
            _hold(place, limit, address, error, trace)
        except KeyboardInterrupt:
            say(place, "was interrupted while it was held at its failure; it ends")
        except Exception as failure:  # noqa: BLE001  (it must not hide the user's own)
            say(place, f"cannot be held at its failure: {failure!r}; it ends")

    sys.addaudithook(hook)


def _ends_the_process(error: object, below: FrameType | None) -> bool:
    """Whether the program is over: the exception has left the last frame of the main thread."""
    return (
        isinstance(error, BaseException)
        and not isinstance(error, KeyboardInterrupt | SystemExit)
        and below is None  # else a library prints an error, and goes on
        and threading.current_thread() is threading.main_thread()
        and not hasattr(sys, "ps1")  # a prompt goes on, too
    )


def _hold(
    place: Place, limit: float, address: str, error: BaseException, trace: TracebackType
) -> None:
    if not debugpy.is_client_connected():
        if not limit:
            return
        say(
            place,
            f"failed: {_in_short(error, trace)}; it is held at most {limit:g} s for a debugger "
            f"to look ({address}; {VARIABLE}=off: never)",
        )
        if not wait_for_debugger(limit):
            say(place, f"had no debugger attached within {limit:g} s of its failure; it ends")
            return
    _show(error, trace)


def _show(error: BaseException, trace: TracebackType) -> None:
    """Stop at the exception in the debugger that is attached, until that lets us run on.

    Private interface of debugpy: its public `trigger_exception_handler` is newer than the
    debugpy of many images, and stops in the innermost frame, be that in a library.
    """
    debugger = sys.modules["pydevd"].get_global_debugger()
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


def _frame_to_show(debugger: Any, trace: TracebackType) -> FrameType:
    """The innermost frame of the user's code, as debugpy's own filter chooses it."""
    every_library = SimpleNamespace(ignore_libraries=False)  # `justMyCode` decides alone
    entries = list(_entries(trace))
    theirs = [
        each.tb_frame
        for each in entries
        if debugger.get_file_type(each.tb_frame) != debugger.PYDEV_FILE
        and not debugger.exclude_exception_by_filter(every_library, each)
    ]
    return theirs[-1] if theirs else entries[-1].tb_frame


def _note_what_debugpy_shows() -> None:
    """Mark every exception that debugpy has stopped for as uncaught: once is enough."""
    debugger = sys.modules["pydevd"].get_global_debugger()
    stop = debugger.do_stop_on_unhandled_exception

    def stop_and_note(thread: object, frame: object, frames: object, arguments: Any) -> None:
        try:
            stop(thread, frame, frames, arguments)
        finally:
            with suppress(Exception):
                vars(arguments[1])[SHOWN] = True

    debugger.do_stop_on_unhandled_exception = stop_and_note


def _was_shown(error: BaseException) -> bool:
    return SHOWN in getattr(error, "__dict__", ())


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _in_short(error: BaseException, trace: TracebackType) -> str:
    """`ValueError: no (train.py, line 41)`, on one line."""
    *_, last = _entries(trace)
    try:
        text = " ".join(str(error).split())[:LONGEST_TEXT]
    except Exception:  # noqa: BLE001  (the user's own __str__)
        text = ""
    where = f"{Path(last.tb_frame.f_code.co_filename).name}, line {last.tb_lineno}"
    return f"{type(error).__name__}{': ' if text else ''}{text} ({where})"
