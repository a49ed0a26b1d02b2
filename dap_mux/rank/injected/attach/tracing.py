"""Trace a rank's threads only while a debugger is attached.

Private interfaces of debugpy, so whoever calls this must expect any exception; then tracing stays
as debugpy has it.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from importlib import import_module
from traceback import walk_stack
from types import FrameType
from typing import Any

KEPT_AS = "dap_mux_tracing"
"""The debugger's attribute that holds what is installed, so that it is installed once."""

STRAGGLERS_S = (0.05, 0.5, 2.0)
"""Pauses before threads are looked at again that were in a trace function when it was removed."""

SETTRACE_PAUSES_S = (0.0,) * 10 + (0.001,) * 100
"""Pauses before `sys.settrace` is called again, because another thread is inside it."""

DEBUGPYS = ("pydev", "_pydev", __name__)
"""How the names of the modules begin that trace for us."""


# debugpy traces every thread from `listen` until the process ends. Where it does so by
# `sys.settrace` (up to Python 3.11), pure Python runs several times slower, whether a debugger is
# attached or not; where it uses `sys.monitoring`, the events that a debugger asked for stay when it
# leaves. Here `configurationDone` turns tracing on in every thread, and `disconnect` turns it off.
def follow_clients(debugger: Any) -> None:
    """From now on trace only while a debugger is attached to `debugger`, a PyDB.

    What is traced now stays so until the next `disconnect`: see `turn_off`.
    """
    if KEPT_AS in vars(debugger):
        return
    kind = _Monitoring if _uses_monitoring() else _Settrace
    tracing = kind(debugger)
    configured, left = debugger.on_configuration_done, debugger.on_disconnect

    def turn_on_and_configure() -> None:
        with suppress(Exception):
            tracing.turn_on()
        configured()

    def leave_and_turn_off() -> None:
        left()
        with suppress(Exception):  # the caller has yet to let threads run on
            tracing.turn_off()

    debugger.on_configuration_done = turn_on_and_configure
    debugger.on_disconnect = leave_and_turn_off
    setattr(debugger, KEPT_AS, tracing)


def run_each_command_untraced(_debugger: Any) -> None:
    """From now on no thread is traced while it runs one of debugpy's own commands.

    A program that waits for its debugger runs them in its main thread, which is traced already: an
    exception raised and caught within an evaluation would stop the rank there, unanswered, where
    the client wants raised exceptions (measured). It may have begun to look for commands before
    this, so what a command does is replaced, not the loop over them.
    """
    kind = import_module("_pydevd_bundle.pydevd_comm").InternalThreadCommand
    do = kind.do_it

    def do_untraced(self: Any, debugger: Any) -> Any:
        with untraced(debugger):
            return do(self, debugger)

    if do.__name__ == "do_it":
        kind.do_it = do_untraced


def look_at_threads_undisturbed(debugger: Any) -> None:
    """Stop the garbage collector while debugpy looks at the frames of other threads.

    It does so whenever breakpoints are set, at a pause, and for the stack of a running thread; see
    `_no_collection`, which only CPython 3.11 needs.
    """
    if sys.version_info[:2] != (3, 11) or "set_suspend" in vars(debugger):
        return
    for name in ("set_tracing_for_untraced_contexts", "set_suspend"):
        setattr(debugger, name, _undisturbed(getattr(debugger, name)))
    kind = import_module("_pydevd_bundle.pydevd_comm").InternalGetThreadStack
    if not hasattr(kind.can_be_executed_by, "__wrapped__"):
        kind.can_be_executed_by = _undisturbed(kind.can_be_executed_by)


def _undisturbed(look: Any) -> Any:
    @wraps(look)
    def look_undisturbed(*arguments: Any, **named: Any) -> Any:
        with _no_collection():
            return look(*arguments, **named)

    return look_undisturbed


@contextmanager
def untraced(debugger: Any) -> Iterator[None]:
    """Keep debugpy from tracing this thread for a while; never fails."""
    try:
        info = debugger.set_additional_thread_info(threading.current_thread())
        info.is_tracing += 1
    except Exception:  # noqa: BLE001  (private parts of debugpy may have changed in any way)
        yield
        return
    monitoring = sys.modules.get("_pydevd_sys_monitoring.pydevd_sys_monitoring")
    suspend = getattr(monitoring, "suspend_current_thread_tracing", None)  # Python 3.12 on
    traced = bool(suspend and suspend())
    try:
        yield
    finally:
        info.is_tracing -= 1
        if traced and monitoring is not None:
            monitoring.resume_current_thread_tracing()


def turn_off(debugger: Any) -> None:
    """Stop tracing unless a debugger is attached. Call `follow_clients` first."""
    with debugger._main_lock:  # noqa: SLF001  (no request is handled meanwhile)
        if not debugger.is_attached():
            getattr(debugger, KEPT_AS).turn_off()


def _uses_monitoring() -> bool:
    constants = import_module("_pydevd_bundle.pydevd_constants")
    return bool(getattr(constants, "PYDEVD_USE_SYS_MONITORING", False))


class _Settrace:
    """Tracing by `sys.settrace`.

    Only a thread itself can stop being traced, but debugpy's library can give any thread another
    trace function: one that removes itself at the thread's next event.
    """

    def __init__(self, debugger: Any) -> None:
        self._tracing = import_module("pydevd_tracing")
        if self._tracing._load_python_helper_lib() is None:  # noqa: SLF001
            raise RuntimeError("threads that run already cannot be traced on this platform")
        self._debugger = debugger
        self._wanted = True
        self._times_off = 0
        self._excluded: set[int] = set()  # threads that the program itself has excluded
        self._enable = debugger.enable_tracing
        self._disable = debugger.disable_tracing
        holder = self._tracing.TracingFunctionHolder
        if holder._original_tracing is not None:  # noqa: SLF001
            holder._original_tracing = _Patient(holder._original_tracing)  # noqa: SLF001
        self._wait = debugger._do_wait_suspend  # noqa: SLF001
        debugger.enable_tracing = self._enable_if_wanted
        debugger.disable_tracing = self._disable_and_remember
        debugger._do_wait_suspend = self._wait_and_look_again  # noqa: SLF001

    def turn_on(self) -> None:
        """In every thread, those that run already included."""
        debugger = self._debugger
        self._wanted = True
        trace = debugger.trace_dispatch
        threading.settrace(trace)
        if debugger.frame_eval_func is not None:  # Python 3.10 and earlier, some versions
            debugger.frame_eval_func()
            trace = debugger.dummy_trace_dispatch
        with _no_collection():
            threads = self._threads(sys._current_frames())  # noqa: SLF001
        self._tracing.set_trace_to_threads(trace, threads - self._excluded)
        debugger.set_tracing_for_untraced_contexts()

    def turn_off(self) -> None:
        """In every thread, at the latest when it next calls a function or comes to a new line."""
        self._wanted = False
        threading.settrace(None)
        if self._debugger.frame_eval_func is not None:
            import_module("_pydevd_frame_eval.pydevd_frame_eval_main").stop_frame_eval()
        self._tracing.SetTrace(None)
        self._untrace_threads()
        self._times_off += 1
        start = import_module("_pydevd_bundle.pydevd_daemon_thread").run_as_pydevd_daemon_thread
        start(self._debugger, self._untrace_stragglers, self._times_off)

    def _untrace_stragglers(self, times_off: int) -> None:
        """Make a frame keep the trace function that debugpy's now returns.

        So it replaced ours where it was called before, and a loop without calls kept it.
        """
        for delay in STRAGGLERS_S:
            time.sleep(delay)
            with self._debugger._main_lock:  # noqa: SLF001  (nobody attaches meanwhile)
                if self._wanted or self._times_off != times_off:
                    return
                self._untrace_threads()

    def _untrace_threads(self) -> None:
        # The frames are of the same moment as the threads: a new thread may get an old one's id.
        with _no_collection():
            frames = sys._current_frames()  # noqa: SLF001
            others = {thread for thread, frame in frames.items() if _is_traced_by_others(frame)}
        threads = self._threads(frames) - others - {threading.get_ident()}
        if threads:
            self._tracing.set_trace_to_threads(self._untrace, threads, create_dummy_thread=False)
        with _no_collection():
            for thread in threads & set(frames):
                self._untrace_frames(frames[thread])

    def _threads(self, frames: dict[int, FrameType]) -> set[int]:
        """All but debugpy's own; those that run no Python now included."""
        known = threading.enumerate()
        ours = {each.ident for each in known if getattr(each, "pydev_do_not_trace", False)}
        ours |= {thread for thread, frame in frames.items() if _is_debugpys_helper(frame)}
        found = {each.ident for each in known} | set(frames)
        return {each for each in found - ours if each is not None}

    def _untrace_frames(self, innermost: FrameType) -> None:
        """A loop that calls nothing has no other events than those of its own frame."""
        for frame, _ in walk_stack(innermost):
            if not _is_of_others(frame.f_trace):
                frame.f_trace = self._untrace

    def _untrace(self, frame: Any, event: str, argument: object) -> Any:
        """A trace function; it may still be on a frame when tracing is wanted again."""
        if self._wanted:
            return self._debugger.trace_dispatch(frame, event, argument)
        if _is_of_others(sys.gettrace()):  # pdb has begun in what this frame has called
            return None
        try:
            self._tracing.SetTrace(None)
            if self._wanted:  # meanwhile
                self._enable()
        except Exception:  # noqa: BLE001  (it would be raised in the user's program)
            return self._untrace
        return None

    def _enable_if_wanted(self, *arguments: Any, **named: Any) -> None:
        self._excluded.discard(threading.get_ident())
        if self._wanted:
            self._enable(*arguments, **named)

    def _disable_and_remember(self) -> None:
        self._excluded.add(threading.get_ident())
        self._disable()

    def _wait_and_look_again(self, *arguments: Any, **named: Any) -> Any:
        """A thread that stood still as its debugger left."""
        try:
            return self._wait(*arguments, **named)
        finally:
            if not self._wanted:
                self._tracing.SetTrace(None)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Stop the garbage collector while frames of other threads are looked at.

    CPython 3.11 makes the object of a frame when somebody asks for it. That may start a collection,
    whose finalizers let the other thread run on; then the object is of a frame that is no more, and
    the process crashes when it is used.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _is_debugpys_helper(frame: FrameType) -> bool:
    """Whether `set_trace_to_threads` has started its thread, which ends at once; see there."""
    return frame.f_code.co_name == "increase_tracing_count"


def _is_traced_by_others(innermost: FrameType) -> bool:
    """Whether pdb, or a trace function of the program's own, has come since: it stays."""
    return any(_is_of_others(frame.f_trace) for frame, _ in walk_stack(innermost))


def _is_of_others(function: Any) -> bool:
    """Some of debugpy's own are partials, methods of compiled classes, or instances of them."""
    if function is None:
        return False
    function = getattr(function, "func", function)
    owner = getattr(function, "__self__", function)
    module = str(getattr(function, "__module__", None) or type(owner).__module__)
    return not module.startswith(DEBUGPYS)


class _Patient:
    """`sys.settrace` for several threads: where it is refused, it is called again.

    CPython up to 3.11 refuses it to a thread while another is in an audit hook in Python that
    `sys.settrace` has called (https://github.com/python/cpython/issues/98257). The user's thread
    would fail, and one of debugpy's would hold its lock for good.
    """

    def __init__(self, set_trace: Any) -> None:
        self._set_trace = set_trace

    def __call__(self, function: Any) -> None:
        for pause in SETTRACE_PAUSES_S:
            if self._is_set(function):
                return
            time.sleep(pause)
        self._set_trace(function)

    def _is_set(self, function: Any) -> bool:
        try:
            self._set_trace(function)
        except RuntimeError:
            return False
        return True


class _Monitoring:
    """Tracing by `sys.monitoring`: events are asked for as a debugger sets breakpoints.

    They stay set on each code object that had one. A callback that answers DISABLE ends that for
    each place at the first event; what a next debugger does starts all events again.
    """

    def __init__(self, debugger: Any) -> None:
        self._monitoring: Any = vars(sys)["monitoring"]
        self._pydevd = import_module("_pydevd_sys_monitoring.pydevd_sys_monitoring")

    def turn_on(self) -> None:
        """As debugpy has it."""
        if self._is_debugpys():
            self._pydevd.update_monitor_events()
            self._pydevd.restart_events()

    def turn_off(self) -> None:
        """For every thread."""
        if not self._is_debugpys():
            return
        events, tool = self._monitoring.events, self._monitoring.DEBUGGER_ID
        self._monitoring.set_events(tool, events.NO_EVENTS)
        for event in (events.PY_START, events.PY_RESUME, events.LINE, events.JUMP):
            self._monitoring.register_callback(tool, event, self._disable)
        self._monitoring.register_callback(tool, events.PY_RETURN, self._disable)

    def _is_debugpys(self) -> bool:
        tool: object = self._monitoring.get_tool(self._monitoring.DEBUGGER_ID)
        return tool == "pydevd"

    def _disable(self, *arguments: object) -> Any:
        return self._monitoring.DISABLE
