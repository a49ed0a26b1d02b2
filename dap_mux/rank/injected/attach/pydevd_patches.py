"""Patches of pydevd that last as long as the process: faults that lose a rank, and slow paths.

Each function takes the debugger, a PyDB, and does nothing where its patch, perhaps that of another
version of dap-mux, is applied already. Private interfaces of debugpy, so whoever calls these must
expect any exception; then debugpy behaves as it does by itself.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import suppress
from functools import lru_cache, wraps
from importlib import import_module
from itertools import islice
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable


MADE_UP = "__traceback_maker"
"""A name in the code of each frame that tblib makes up."""
STALE = -1
"""The sequence number of a request whose client has left."""
MAX_COMPILED_WATCHES = 128
MAX_TEXT = 65_535
"""Characters of an exception's text: where debugpy cuts a value."""
RUNS = 1
"""The state of a thread that debugpy does not hold."""
STEPS = frozenset({"internal_step_in_thread", "internal_smart_step_into"})
"""The commands of pydevd that make a thread step."""


def end_wait_once_configured(debugger: Any) -> None:
    """Let `configurationDone` itself end the program's `wait_for_client`.

    debugpy looks every 20 ms whether a configured client is there, and goes on waiting where that
    client has left by then (measured).
    """
    if "on_configuration_done" in vars(debugger):
        return
    api: Any = sys.modules["debugpy.server.api"]
    configured = debugger.on_configuration_done

    def configure_and_end_wait() -> None:
        configured()
        with suppress(RuntimeError):  # the program does not wait
            api.wait_for_client.cancel()

    debugger.on_configuration_done = configure_and_end_wait


def resume_while_detached(debugger: Any) -> None:
    """Let a thread run on that stops between `disconnect` and the next `initialize`.

    A thread that has decided to stop, say at a breakpoint whose condition takes its time, does so
    also after the `disconnect` that resumed all threads, and no client continues it (measured).
    """
    if "do_wait_suspend" in vars(debugger):
        return
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI()
    wait, initialized = debugger.do_wait_suspend, debugger.on_initialize
    disconnected = debugger.on_disconnect
    detached = False

    def initialize() -> None:
        nonlocal detached
        detached = False
        initialized()

    def disconnect() -> None:
        nonlocal detached
        detached = True
        disconnected()

    def wait_unless_detached(*rest: Any, **named: Any) -> Any:
        if detached:
            api.request_resume_thread("*")
        return wait(*rest, **named)

    debugger.on_initialize, debugger.on_disconnect = initialize, disconnect
    debugger.do_wait_suspend = wait_unless_detached


def forget_steps(debugger: Any) -> None:
    """Drop the steps that an earlier client has asked of threads that could not begin them.

    A step waits behind an evaluation. Where the connection ends meanwhile, all threads run on, and
    the step is done at the thread's next stop, which another client has asked for (measured).
    """
    for queue in list(debugger._cmd_queue.values()):  # noqa: SLF001
        with queue.mutex:
            kept = [one for one in queue.queue if getattr(one.method, "__name__", "") not in STEPS]
            queue.queue.clear()
            queue.queue.extend(kept)


def continue_always_replies(debugger: Any) -> None:
    """Answer `continue` as soon as no thread is suspended, which may be at once.

    debugpy answers it when a suspended thread resumes, and so never where none is suspended. A
    client cannot know for certain: a stop is sent twice where a `pause` has crossed it.
    """
    kind = type(debugger.threads_suspended_single_notification)
    add, resumed = kind.add_on_resumed_callback, kind.on_thread_resume
    if add.__name__ != "add_on_resumed_callback":
        return

    def add_or_call(self: Any, callback: Any) -> None:
        with self._lock:
            if self._suspended_thread_id_to_thread:
                add(self, callback)
                return
        callback()

    def resume_and_call(self: Any, *rest: Any) -> None:
        resumed(self, *rest)
        due = []
        with self._lock, self._callbacks_lock:
            if not self._suspended_thread_id_to_thread:
                due, self._callbacks = self._callbacks, due
        for callback in due:
            callback()

    kind.add_on_resumed_callback, kind.on_thread_resume = add_or_call, resume_and_call


_unanswered: dict[Any, Any] = {}
"""Requests by number: the debugger has another writer when its adapter was started again."""


def drop_stale_evaluates(debugger: Any) -> None:
    """Send no answer to an `evaluate` of a client that has left.

    debugpy's adapter ends when it gets one, and then no client can attach any more (measured).
    """
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    evaluate, disconnected = api.request_exec_or_evaluate_json, debugger.on_disconnect
    add_command = debugger.writer.add_command

    def evaluate_and_note(self: Any, py_db: Any, request: Any, thread_id: Any) -> Any:
        _unanswered[request.seq] = request
        return evaluate(self, py_db, request, thread_id)

    def disconnect() -> None:
        for request in list(_unanswered.values()):
            request.seq = STALE
        _unanswered.clear()
        disconnected()

    def add_unless_stale(command: Any) -> Any:
        seq = (command.as_dict or {}).get("request_seq")
        _unanswered.pop(seq, None)
        return None if seq == STALE else add_command(command)

    if evaluate.__name__ == "request_exec_or_evaluate_json":
        api.request_exec_or_evaluate_json = evaluate_and_note
        debugger.on_disconnect = disconnect
    if "add_command" not in vars(debugger.writer):
        debugger.writer.add_command = add_unless_stale


def wake_to_run_on(debugger: Any) -> None:
    """Let suspended threads run on at once: by itself a thread looks every 0.2 s whether it may.

    Older releases have no event for each thread, and are left as they are.
    """
    if not hasattr(debugger, "_thread_events"):
        return
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    resume = api.request_resume_thread

    def resume_and_wake(self: Any, thread_id: Any) -> None:
        resume(self, thread_id)
        for event in list(debugger._thread_events.values()):  # noqa: SLF001
            event.set()

    if resume.__name__ == "request_resume_thread":
        api.request_resume_thread = resume_and_wake


def wake_to_step(debugger: Any) -> None:
    """Let a thread begin its step at once, and those that run on with it.

    debugpy means to, and wakes whichever thread it knows comes last in a set: the loop over that
    set has taken the variable (`_update_stepping_info`).
    """
    if not hasattr(debugger, "_thread_events"):
        return
    commands = import_module("_pydevd_bundle.pydevd_comm")

    def then_wake(do: Any) -> Any:
        @wraps(do)
        def do_it(self: Any, debugger: Any) -> Any:
            try:
                return do(self, debugger)
            finally:
                info = getattr(threading.current_thread(), "additional_info", None)
                if info is not None and info.is_in_wait_loop and info.pydev_state == RUNS:
                    for event in list(debugger._thread_events.values()):  # noqa: SLF001
                        event.set()

        return do_it

    for kind in (commands.InternalThreadCommand, commands.InternalSetNextStatementThread):
        if "wakes_to_step" not in vars(kind):
            kind.do_it, kind.wakes_to_step = then_wake(kind.do_it), True


def compile_watches_once(_debugger: Any) -> None:
    """Compile a watch when it is first evaluated, not again at every stop."""
    values = import_module("_pydevd_bundle.pydevd_vars")
    if not hasattr(values.compile_as_eval, "cache_info"):
        cached = lru_cache(MAX_COMPILED_WATCHES)(values.compile_as_eval)
        values.compile_as_eval = cached  # type: ignore[attr-defined]


def bound_exception_texts(_debugger: Any) -> None:
    """Cut the text of an exception, which debugpy sends as it is, up to three times in a message.

    A message longer than a session accepts costs the rank its connection.
    """
    comm: Any = import_module("_pydevd_bundle.pydevd_comm")
    factory: Any = import_module("_pydevd_bundle.pydevd_net_command_factory_json")
    answer, build = comm._evaluate_response, comm.build_exception_info_response  # noqa: SLF001
    if answer.__name__ != "_evaluate_response":
        return

    def answer_bounded(py_db: Any, request: Any, result: Any, error_message: str = "") -> None:
        if error_message:
            result, error_message = _bounded(result), _bounded(error_message)
        answer(py_db, request, result, error_message)

    def build_bounded(*rest: Any, **named: Any) -> Any:
        response = build(*rest, **named)
        body, details = response.body, response.body.details
        body.description = _bounded(body.description)
        details.message, details.stackTrace = map(_bounded, (details.message, details.stackTrace))
        return response

    comm._evaluate_response = answer_bounded  # noqa: SLF001
    comm.build_exception_info_response = build_bounded
    factory.build_exception_info_response = build_bounded


def _bounded(text: Any) -> Any:
    is_long = isinstance(text, str) and len(text) > MAX_TEXT
    return f"{text[:MAX_TEXT]}..." if is_long else text


def wake_for_timeouts_only(_debugger: Any) -> None:
    """Wake the thread that watches time limits no earlier than the next limit.

    Each evaluation has one, and wakes that thread to tell it of the limit (debugpy warns of slow
    evaluations); then it competes with the evaluation itself. It is awake for the earliest of the
    limits in its list anyway, those of evaluations that are over included.
    """
    thread = import_module("_pydevd_bundle.pydevd_timeout")._TimeoutThread  # noqa: SLF001
    add = thread.add_on_timeout_handle

    def add_and_wake_if_earliest(self: Any, handle: Any) -> None:
        with self._lock:
            handles = self._handles
            if handles and handles[0].abs_timeout <= handle.abs_timeout:
                handles[1:] = [one for one in handles[1:] if not one.disposed]
                handles.append(handle)
                return
        add(self, handle)

    if add.__name__ == "add_on_timeout_handle":
        thread.add_on_timeout_handle = add_and_wake_if_earliest


def skip_copied_exceptions(debugger: Any) -> None:
    """Stop for no exception that has come with a traceback from another process.

    tblib makes that by frames under the user's file names, each of which raises NameError, also
    where only a message is unpickled. The exception itself has stopped where it was raised: so
    none of its copies stops where they stop too, that is with breaks in user code.
    """
    if "exclude_exception_by_filter" in vars(debugger):
        return
    exclude = debugger.exclude_exception_by_filter

    def exclude_or_is_copy(breakpoint: Any, trace: Any) -> Any:
        # The first counts whatever is broken at.
        counting = None if debugger.break_on_user_uncaught_exceptions else 1
        frames = islice(walk_tb(trace), counting)
        is_copy = any(MADE_UP in frame.f_code.co_names for frame, _ in frames)
        return is_copy or exclude(breakpoint, trace)

    debugger.exclude_exception_by_filter = exclude_or_is_copy


# Keep the objects that debugpy puts in the place of `sys.stdout` and `sys.stderr`.
#
# While it evaluates an expression of a debug console debugpy replaces both streams, and
# afterwards it drops the replacement. CPython's `print` holds no reference to the stream that it
# writes to, so where another thread prints at that moment the process ends with a segmentation
# fault (measured: CPython 3.11, one rank in thirty minutes of a console's expressions). Here a
# replacement is made once for each stream, and used again.

MAX_KEPT = 32
"""A program may replace its streams again and again: these many are kept, the newest."""


def keep_redirectors() -> None:
    """From now on no replacement is freed while the program may still write to it."""
    pydevd_io: Any = import_module("_pydevd_bundle.pydevd_io")
    make = pydevd_io.IORedirector
    if not isinstance(make, type):
        return  # it is done
    kept: deque[tuple[Any, str, Any]] = deque(maxlen=MAX_KEPT)

    def make_or_use_again(original: Any, new: Any, wrap_buffer: bool = False) -> Any:
        kind = f"{type(new).__name__} {getattr(new, '_out_ctx', '')} {wrap_buffer}"
        for stream, its_kind, redirector in kept:
            if stream is original and its_kind == kind:
                return redirector
        redirector = make(original, new, wrap_buffer=wrap_buffer)
        kept.append((original, kind, redirector))
        return redirector

    pydevd_io.IORedirector = make_or_use_again


# Ray's own `breakpoint()` and post-mortem debugging in a rank.
#
# Under `justMyCode` the breakpoint stops in the frame of the user's code. An exception that a
# rank has stopped for where it was raised is not shown again by `RAY_DEBUG_POST_MORTEM=1`.

POST_MORTEM = "_post_mortem"


def stop_in_users_frame() -> None:
    """Ray asks debugpy to stop in a frame of Ray's, where `justMyCode` lets none stop."""
    module = sys.modules.get("ray.util.debugpy")
    if module is None:
        return
    vars(module)["_debugpy_breakpoint"] = _stop_at_caller
    post_mortem = vars(module).get(POST_MORTEM)
    if post_mortem is not None and post_mortem.__module__ == module.__name__:
        vars(module)[POST_MORTEM] = _unless_shown(post_mortem)


def _unless_shown(post_mortem: Callable[[], Any]) -> Callable[[], None]:
    def post_mortem_unless_shown() -> None:
        import sys  # noqa: PLC0415  (this function outlives the module)

        debugger = sys.modules["pydevd"].get_global_debugger()
        traceback: Any = sys.exc_info()[2]
        is_users = False
        while traceback is not None:
            is_users = is_users or debugger.in_project_scope(traceback.tb_frame)
            traceback = traceback.tb_next
        attached = sys.modules["debugpy"].is_client_connected()
        if not (attached and is_users and debugger.break_on_user_uncaught_exceptions):
            post_mortem()

    return post_mortem_unless_shown


def _stop_at_caller() -> None:
    import sys  # noqa: PLC0415  (this function outlives the module)

    users: Any = sys._getframe(1)  # noqa: SLF001
    while users.f_back and users.f_globals.get("__name__", "").startswith("ray.util."):
        users = users.f_back
    pydevd = sys.modules["pydevd"]
    pydevd.get_global_debugger().block_until_configuration_done()
    pydevd.settrace(
        suspend=True,
        trace_only_current_thread=True,
        patch_multiprocessing=False,
        stop_at_frame=users,
    )
