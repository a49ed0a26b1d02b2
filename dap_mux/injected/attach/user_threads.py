"""Tell which threads of a rank stand in user code: a worker has many that never do.

The event of a stop has them (`userThreads`), and a thread that comes to stand in user code while
its rank is stopped is told by an event of its own, for which DAP has none. It goes out as
telemetry, which editors do not show.

It lasts as long as what `stop_details` does, which must be in place. Private interfaces of debugpy,
so whoever calls this must expect any exception; where nothing is told, the rank has one row.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from types import CodeType

    Threads = list[dict[str, Any]]

STOP = "make_thread_suspend_single_notification"
EVENT = "dap-mux: threads in user code"
"""The output by which threads are told that came to stand in user code after the stop."""


def tell_user_threads(debugger: Any) -> None:
    """From now on stops of `debugger`, a PyDB, name its threads in user code."""
    factory = debugger.cmd_factory
    plain_stop = vars(factory)[STOP]

    def stop(py_db: Any, thread_id: str, *rest: Any) -> Any:
        command = plain_stop(py_db, thread_id, *rest)
        try:
            threads = user_threads(py_db)
            stop.told = {each["id"] for each in threads}  # type: ignore[attr-defined]
            event = command.as_dict
            body = {**event["body"], "userThreads": threads}
            return type(command)(command.id, 0, {**event, "body": body}, is_json=True)
        except Exception:  # noqa: BLE001  (the session shows one row)
            return command

    stop.told = set()  # type: ignore[attr-defined]
    setattr(factory, STOP, stop)
    tell_late_threads(debugger)


def tell_late_threads(debugger: Any) -> None:
    """Tell of each thread that is suspended in user code after the stop was told."""
    kind = type(debugger.threads_suspended_single_notification)
    suspend = kind.on_thread_suspend
    if suspend.__name__ != "on_thread_suspend":
        return

    def suspend_and_tell(self: Any, thread_id: str, thread: Any, *rest: Any) -> None:
        suspend(self, thread_id, thread, *rest)
        with suppress(Exception):
            _tell_late(debugger, thread)

    kind.on_thread_suspend = suspend_and_tell


def _tell_late(debugger: Any, thread: Any) -> None:
    told = getattr(vars(debugger.cmd_factory).get(STOP), "told", None)
    if told is None:
        return  # this session has not asked for it
    new = [each for each in user_threads(debugger, only=thread) if each["id"] not in told]
    if new:
        told.update(each["id"] for each in new)
        command = type(debugger.cmd_factory.make_thread_killed_message(1))
        data = {"threads": new}
        body = {"category": "telemetry", "output": EVENT, "data": data}
        event = {"type": "event", "event": "output", "body": body}
        debugger.writer.add_command(command(0, 0, event, is_json=True))


def user_threads(debugger: Any, only: Any = None) -> Threads:
    """Return `{"id", "name"}` of the threads with a frame that debugpy takes for the user's."""
    utils = import_module("_pydevd_bundle.pydevd_utils")
    id_of = import_module("_pydevd_bundle.pydevd_constants").get_thread_id
    kind = import_module("_pydevd_bundle._debug_adapter.pydevd_schema").Thread
    threads = utils.get_non_pydevd_threads() if only is None else [only]
    threads = [each for each in threads if not getattr(each, "pydev_do_not_trace", False)]
    stacks = _frames({each.ident for each in threads})
    return [
        kind(id=id_of(each), name=each.name).to_dict(update_ids_to_dap=True)
        for each in threads
        if any(_is_users(debugger, frame) for frame in stacks.get(each.ident, ()))
    ]


def _frames(threads: set[int | None]) -> dict[int, list[Any]]:
    """Return the frames of each of these threads.

    No garbage is collected meanwhile: a finalizer would let the other threads run on, and CPython
    3.11 crashes if one of their frames has ended by then.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        tops = sys._current_frames()  # noqa: SLF001
        return {thread: _stack(top) for thread, top in tops.items() if thread in threads}
    finally:
        if enabled:
            gc.enable()


def _stack(frame: Any) -> list[Any]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _is_users(debugger: Any, frame: Any) -> bool:
    code: CodeType = frame.f_code
    if not debugger.in_project_scope(frame):
        return False
    filtered = debugger.is_files_filter_enabled
    return not (filtered and debugger.apply_files_filter(frame, code.co_filename, False))
