"""What a rank reports in events beyond DAP: stacks at stops, threads, actors, the program's end.

What has no field of its own goes out as telemetry, which editors do not show. Private interfaces of
debugpy, so whoever calls this must expect any exception; where an event cannot be changed, it is
sent as it was, and the session asks, or does not know.
"""

from __future__ import annotations

import gc
import linecache
import sys
import threading
from contextlib import suppress
from functools import partial
from importlib import import_module
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import CodeType

    Threads = list[dict[str, Any]]

STOP = "make_thread_suspend_single_notification"
RESUME = "make_thread_resume_single_notification"


def _add_to_stops(factory: Any, plain_stop: Any, more: Callable[..., dict[str, Any]]) -> Any:
    """Add to the event of a stop what `more` makes of the same arguments; return what makes it.

    Where `more` fails the event is as `plain_stop` makes it, and the session asks, or has one row.
    """

    def stop(py_db: Any, thread_id: str, *rest: Any) -> Any:
        command = plain_stop(py_db, thread_id, *rest)
        try:
            event = command.as_dict
            body = {**event["body"], **more(py_db, thread_id, *rest)}
            return type(command)(command.id, 0, {**event, "body": body}, is_json=True)
        except Exception:  # noqa: BLE001  (private parts of debugpy, and whatever the job runs)
            return command

    setattr(factory, STOP, stop)
    return stop


def _telemetry(debugger: Any) -> Callable[..., None]:
    """Return what sends an output event that editors do not show."""
    command = type(debugger.cmd_factory.make_thread_killed_message(1))

    def tell(output: str, **more: Any) -> None:
        body = {"category": "telemetry", "output": output, **more}
        event = {"type": "event", "event": "output", "body": body}
        debugger.writer.add_command(command(0, 0, event, is_json=True))

    return tell


# Stops and steps in few messages: each costs debugpy and its adapter 0.5 ms of CPU. The event of
# a stop has the stack in it, as `stackTrace` would answer, the text of the line, and the name of
# the thread, as `threads` would. A rank that was told to step sends no `continued` when it
# starts, for which DAP does not ask. It lasts until the next `disconnect`, the session's or the
# adapter's when a connection breaks: other debuggers get debugpy's own events.


def stop_with_stack(debugger: Any) -> None:
    """From now on `debugger`, a PyDB, sends stops with their stack, and no resumes of steps."""
    factory = debugger.cmd_factory
    find_thread = import_module("_pydevd_bundle.pydevd_comm").pydevd_find_thread_by_id
    no_command = import_module("_pydevd_bundle.pydevd_net_command").NULL_NET_COMMAND
    plain_stop, plain_resume = getattr(type(factory), STOP), getattr(type(factory), RESUME)

    def more(py_db: Any, thread_id: str, thread: Any, *_: Any) -> dict[str, Any]:
        return {**_told_stack(factory, py_db, thread_id), "threadName": thread.name}

    def resume(thread_id: str) -> Any:
        with suppress(Exception):
            if find_thread(thread_id).additional_info.pydev_step_cmd != -1:
                return no_command
        return plain_resume(factory, thread_id)

    _until_disconnect(factory)
    _add_to_stops(factory, partial(plain_stop, factory), more)
    setattr(factory, RESUME, resume)


def _told_stack(factory: Any, py_db: Any, thread_id: str) -> dict[str, Any]:
    """Return `stackFrames`, and `lineText` where the top frame is the thread's innermost one."""
    answer = factory.make_get_thread_stack_message(py_db, 0, thread_id, None, None, True)
    frames = answer.as_dict["body"]["stackFrames"]
    found, line = {"stackFrames": frames}, frames[0]["line"]
    frame = next(iter(py_db.suspended_frames_manager.get_frames_list(thread_id)))
    if (frame.f_code.co_name, frame.f_lineno) == (frames[0]["name"], line):
        text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals)
        found["lineText"] = text.strip()
    return found


def _until_disconnect(factory: Any) -> None:
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    request_disconnect = api.request_disconnect

    def undo_and_disconnect(self: Any, *rest: Any, **named: Any) -> Any:
        vars(factory).pop(STOP, None)
        vars(factory).pop(RESUME, None)
        api.request_disconnect = request_disconnect
        return request_disconnect(self, *rest, **named)

    api.request_disconnect = undo_and_disconnect


# Which threads of a rank stand in user code: a worker has many that never do. The event of a
# stop has them (`userThreads`), and a thread that comes to stand in user code while its rank is
# stopped is told by an event of its own, for which DAP has none. It lasts as long as
# `stop_with_stack`, which must be in place.

THREADS_EVENT = "dap-mux: threads in user code"
"""The output by which threads are told that came to stand in user code after the stop."""


def tell_user_threads(debugger: Any) -> None:
    """From now on stops of `debugger`, a PyDB, name its threads in user code."""
    factory = debugger.cmd_factory

    def more(py_db: Any, *_: Any) -> dict[str, Any]:
        threads = user_threads(py_db)
        stop.told = {each["id"] for each in threads}
        return {"userThreads": threads}

    stop = _add_to_stops(factory, vars(factory)[STOP], more)
    stop.told = set()
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
        _telemetry(debugger)(THREADS_EVENT, data={"threads": new})


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
        if any(_is_users(debugger, frame) for frame, _ in stacks.get(each.ident, ()))
    ]


def _frames(threads: set[int | None]) -> dict[int, list[tuple[Any, int]]]:
    """Return the frames of each of these threads, with their lines.

    No garbage is collected meanwhile: a finalizer would let the other threads run on, and CPython
    3.11 crashes if one of their frames has ended by then.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        tops = sys._current_frames()  # noqa: SLF001
        return {each: list(walk_stack(top)) for each, top in tops.items() if each in threads}
    finally:
        if enabled:
            gc.enable()


def _is_users(debugger: Any, frame: Any) -> bool:
    code: CodeType = frame.f_code
    if not debugger.in_project_scope(frame):
        return False
    filtered = debugger.is_files_filter_enabled
    return not (filtered and debugger.apply_files_filter(frame, code.co_filename, False))


# Which actors of Monarch this process is, now and from now on; where nothing is told, a rank has
# the name of its first actor.

ACTORS = "dap_mux.rank.frameworks.monarch_actors"
HANDLER = "monarch._src.actor.actor_mesh"
ACTOR_EVENT = "dap-mux: an actor"
"""The output by which an actor is told."""


def tell_actors(debugger: Any) -> None:
    """From now on `debugger`, a PyDB, tells of actors; nothing where there are none.

    The event of a stop has the actor whose code has stopped.
    """
    actors: Any = sys.modules.get(ACTORS)
    if actors is None:
        return
    tell, factory = _telemetry(debugger), debugger.cmd_factory

    def more(py_db: Any, thread_id: str, *_: Any) -> dict[str, Any]:
        frames = py_db.suspended_frames_manager.get_frames_list(thread_id)
        return {"actor": _actor(next(iter(frames)))}

    actors.tell_by(lambda actor: tell(ACTOR_EVENT, data=actor))
    _add_to_stops(factory, vars(factory)[STOP], more)


def _actor(innermost: Any) -> dict[str, Any] | None:
    """Return the actor that a frame is in; its number and its place are those of the call."""
    for frame, _ in walk_stack(innermost):
        if frame.f_globals.get("__name__") == HANDLER and "ctx" in frame.f_code.co_varnames:
            context = frame.f_locals["ctx"]
            point, labels = context.message_rank, list(context.message_rank)
            sizes, places = [point.size(each) for each in labels], [point[each] for each in labels]
            name = context.actor_instance.name
            return {"name": name, "rank": point.rank, "mesh": [labels, sizes, places]}
    return None


# That the program is over, before debugpy says so of the debugging. debugpy's `terminated` says
# that it has lost the process or its own thread in there, and not which: a bad message that ends
# pydevd's reader looks the same as the end of the program (measured). What is said here comes
# first where the main thread has ended.


def announce_end(debugger: Any, text: str) -> None:
    """From now on `debugger`, a PyDB, announces the end of the program by an event with `text`."""
    name = "dispose_and_kill_all_pydevd_threads"
    if name in vars(debugger):
        return
    dispose, tell = getattr(debugger, name), _telemetry(debugger)

    def tell_and_dispose(*arguments: Any, **named: Any) -> Any:
        with suppress(Exception):
            if not threading.main_thread().is_alive():
                tell(text)
        return dispose(*arguments, **named)

    setattr(debugger, name, tell_and_dispose)
