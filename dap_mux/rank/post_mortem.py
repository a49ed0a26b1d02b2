"""Hold a rank at an uncaught exception, so that somebody can look before the launcher kills all."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from inspect import currentframe
from pathlib import Path
from types import FrameType, SimpleNamespace, TracebackType
from typing import Any

import debugpy  # noqa: T100

from dap_mux.rank.black_box import BlackBox, entries, is_library, message_of
from dap_mux.rank.debugger_wait import visits, wait_for_debugger
from dap_mux.rank.environ import POST_MORTEM, Hold, Place
from dap_mux.rank.hidden_frames import HIDDEN, users_part
from dap_mux.rank.in_process import the_debugger
from dap_mux.rank.injected.attach.pydevd_patches import MADE_UP
from dap_mux.rank.injected.attach.tracing import untraced
from dap_mux.rank.ready import say, write_ready_file
from dap_mux.rank.stack_answers import answer_looks

# An audit hook for one event that runs no Python at all the others.
#
# Python's audit hooks are called for every import, open file and `sys.settrace`. While one written
# in Python runs, other threads may run too, and CPython up to 3.11 fails where that happens inside
# `sys.settrace`: the next thread that calls it gets "Cannot install a trace function while another
# trace function is being installed" (https://github.com/python/cpython/issues/98257), in the user's
# program or in debugpy. A look into a dict stays in C.


def on_audit_event(event: str, call: Callable[[], None]) -> None:
    """Call `call` at every audit event of this name, for as long as the process lives.

    Its frame's caller is `_Key.__eq__`, whose caller is what raised the event.
    """
    watched: dict[Any, Any] = {_Key(event, call): None}
    sys.addaudithook(watched.get)


class _Key:
    """A dict compares it with a text of the same hash, the event's own name, and no other."""

    def __init__(self, event: str, call: Callable[[], None]) -> None:
        self._event = event
        self._call = call

    def __hash__(self) -> int:
        return hash(self._event)

    def __eq__(self, other: object) -> bool:
        if other == self._event:
            self._call()
        return False


# Stop at an exception in the debugger that is attached, and know of its own such stops.
#
# Private interface of debugpy: its public `trigger_exception_handler` is newer than the debugpy of
# many images, and stops in the innermost frame, be that in a library.

# Marks on an exception: the debugger has let it go on; it has gone without a word.
SHOWN, ABANDONED = "__dap_mux_shown__", "__dap_mux_abandoned__"


_stops: list[Any] = []
"""The stops that debugpy is in: `info` of the thread, and whether the exception is `abandoned`."""


def stop_at(error: BaseException, trace: TracebackType) -> bool:
    """Stop this thread at an exception that has left it, until the debugger lets it run on.

    False where the debugger has gone without a word, as it does when a tunnel breaks.
    """
    debugger = the_debugger()
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
        debugger = the_debugger()
        stop = debugger.do_stop_on_unhandled_exception

        def stop_and_mark(thread: Any, frame: object, frames: object, raised: Any) -> None:
            this = SimpleNamespace(info=thread.additional_info, abandoned=False)
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
    return copied and bool(the_debugger().break_on_user_uncaught_exceptions)


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


EXIT_PRIORITY = 10_000
"""Among the finalizers of a worker: its queues must not have been emptied yet."""
MAX_TEXT = 200
LET_GO = "failure-was-let-go"
"""A file beside those that tell of failures."""


# Held is what ends the process: an exception that leaves the main thread, also of a process that
# `multiprocessing` has started. SystemExit and KeyboardInterrupt are somebody's wish. An exception
# in another thread ends that thread alone, so nothing is about to be lost; a debugger's own filter
# for uncaught exceptions stops there, too.
def arm(place: Place, hold: Hold | None, address: str, told: Sequence[Path] = ()) -> None:
    """From now on, hold this process at an uncaught exception. Call it once, debugpy running.

    `address` is where a debugger can attach; `hold` is as `hold_of` gives it; `told` are files
    for whoever started it, to say of the failure.
    """
    if hold is not None:
        note_what_is_shown()
    elif not told:
        return
    watch = Watch(place, hold, address, told)
    on_audit_event("sys.excepthook", watch.before_excepthook)
    if "multiprocessing" in sys.modules or "--multiprocessing-fork" in sys.orig_argv:
        watch.at_the_end_of_a_worker()


# Python tells its audit hooks of an exception that is about to end the program, before
# `sys.excepthook` runs: whatever program or library replaces that hook (some call `MPI_Abort` in
# it), and whatever filters a debugger has set. By then the program's frames are left, and kept by
# the traceback: as in `pdb.post_mortem`, values can be read, and the only way is on to the end.
class Watch:
    """Looks at what ends this process, and holds it."""

    def __init__(
        self, place: Place, hold: Hold | None, address: str, told: Sequence[Path] = ()
    ) -> None:
        self._told = told
        self._box = BlackBox(told[0]) if told else None
        if told:
            answer_looks(told[0])
        self._place = place
        self._hold_for = hold
        self._address = address
        self._pid = os.getpid()
        self._since = time.time()

    def before_excepthook(self) -> None:
        """Called when Python is about to print an exception, which is in `sys.last_value` by then.

        With a frame below, a library prints an error and goes on; so does a prompt.
        """
        frame = currentframe()
        raised_below = frame and frame.f_back and frame.f_back.f_back
        error = getattr(sys, "last_value", None)
        if raised_below is None and error is not None and not hasattr(sys, "ps1"):
            self._look(error, sys.last_traceback)

    def at_the_end_of_a_worker(self) -> None:
        """A process that `multiprocessing` has started catches its exceptions: there is no hook.

        It clears its finalizers as it begins, and then calls who is registered for forks.
        Up to Python 3.12: from 3.13 on they run when the exception is dealt with, and it ends.
        """
        from multiprocessing import util  # noqa: PLC0415  (only where it is used anyway)

        def register(watch: Watch) -> None:
            if os.getpid() == watch._pid:
                util.Finalize(None, watch.end_of_worker, exitpriority=EXIT_PRIORITY)

        register(self)
        util.register_after_fork(self, register)
        _kept.append(self)  # it is known there by a weak reference

    def end_of_worker(self) -> None:
        """Called while the exception is on its way, if there is one."""
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit) and _is_torchs(error.__traceback__):
            error = error.__context__
        if error is not None:
            self._look(error, error.__traceback__)

    def _look(self, error: BaseException, trace: TracebackType | None) -> None:
        if (
            os.getpid() != self._pid  # a forked child is no rank
            or isinstance(error, KeyboardInterrupt | SystemExit)
            or threading.current_thread() is not threading.main_thread()
        ):
            return
        trace = users_part(trace)
        if self._box is not None:
            self._box.failed(error, trace)
        if trace is None or self._hold_for is None:
            return  # a syntax error in the program has no frames
        if was_shown(error):
            self._was_let_go()
            return
        try:
            self._hold(error, trace)
        except KeyboardInterrupt:
            say(self._place, "was interrupted while it was held at its failure; exiting")
        except Exception as failure:  # noqa: BLE001  (it must not hide the user's own)
            say(self._place, f"cannot be held at its failure: {failure!r}; exiting")

    def _hold(self, error: BaseException, trace: TracebackType) -> None:
        why = f"failed: {_in_short(error, trace)}; it is held"
        self._failure = _name_and_place(error, trace)
        self._tell(None)
        while debugpy.is_client_connected() or self._somebody_comes(why):
            if debugpy.is_client_connected() and stop_at(error, trace):
                self._was_let_go()
                return
            why = "lost its debugger before that let it end; it is held again,"

    def _somebody_comes(self, why: str) -> bool:
        assert self._hold_for is not None
        limit = self._hold_for.visited if visits() else self._hold_for.unvisited
        if not limit or (not self._hold_for.unvisited and self._follows_another()):
            return False
        say(
            self._place,
            f"{why} at most {limit:g} s for a debugger to look "
            f"({self._address}; {POST_MORTEM}=off: never)",
        )
        self._tell(time.time() + limit)
        came = wait_for_debugger(limit)
        self._tell(None)
        if came:
            return True
        say(self._place, f"had no debugger attached within {limit:g} s; exiting")
        return False

    def _was_let_go(self) -> None:
        """Somebody has looked at the failure: those of other ranks that follow are not held."""
        for path in self._told:
            with suppress(OSError):
                path.with_name(LET_GO).touch()

    def _follows_another(self) -> bool:
        """Whether another rank of this job and machine has failed, and was looked at."""
        for path in self._told:
            with suppress(OSError):  # mostly there is none
                if path.with_name(LET_GO).stat().st_mtime >= self._since:
                    return True
        return False

    def _tell(self, until: float | None) -> None:
        record = {"pid": os.getpid(), "failure": self._failure, "until": until}
        for path in self._told:
            with suppress(OSError):  # who started us is gone
                write_ready_file(path, record)


_kept: list[Watch] = []


def _is_torchs(trace: TracebackType | None) -> bool:
    """Whether `torch.multiprocessing.spawn` exits for an exception that it has written down."""
    frames = [entry.tb_frame for entry in entries(trace)]
    last = [each for each in frames if not each.f_code.co_filename.startswith(HIDDEN)][-1:]
    return any(
        frame.f_code.co_name == "_wrap"
        and frame.f_globals.get("__name__") == "torch.multiprocessing.spawn"
        for frame in last
    )


def _name_and_place(error: BaseException, trace: TracebackType) -> str:
    """`ValueError at train.py:41`: the innermost line of the program's own, if there is one."""
    all_entries = list(entries(trace))
    own = [one for one in all_entries if not is_library(one.tb_frame.f_code.co_filename)]
    last = (own or all_entries)[-1]
    name = Path(last.tb_frame.f_code.co_filename).name
    return f"{type(error).__name__} at {name}:{last.tb_lineno}"


def _in_short(error: BaseException, trace: TracebackType) -> str:
    """`ValueError: no (train.py, line 41)`, on one line."""
    *_, last = entries(trace)
    text = " ".join(message_of(error).split())[:MAX_TEXT]
    where = f"{Path(last.tb_frame.f_code.co_filename).name}, line {last.tb_lineno}"
    return f"{type(error).__name__}{': ' if text else ''}{text} ({where})"
