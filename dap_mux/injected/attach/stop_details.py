"""Stops and steps of a rank in few messages: each costs debugpy and its adapter 0.5 ms of CPU.

The event of a stop has the stack in it, as `stackTrace` would answer, the text of the line, and the
name of the thread, as `threads` would. A rank that was told to step sends no `continued` when it
starts, for which DAP does not ask.

It lasts until the next `disconnect`, the session's or the adapter's when a connection breaks: other
debuggers get debugpy's own events. Private interfaces of debugpy, so whoever calls this must expect
any exception; where an event cannot be changed, it is sent as it was, and the session asks.
"""

from __future__ import annotations

import linecache
from contextlib import suppress
from importlib import import_module
from typing import Any

STOP = "make_thread_suspend_single_notification"
RESUME = "make_thread_resume_single_notification"


def stop_with_stack(debugger: Any) -> None:
    """From now on `debugger`, a PyDB, sends stops with their stack, and no resumes of steps."""
    factory = debugger.cmd_factory
    find_thread = import_module("_pydevd_bundle.pydevd_comm").pydevd_find_thread_by_id
    no_command = import_module("_pydevd_bundle.pydevd_net_command").NULL_NET_COMMAND
    plain_stop, plain_resume = getattr(type(factory), STOP), getattr(type(factory), RESUME)

    def stop(py_db: Any, thread_id: str, thread: Any, *rest: Any) -> Any:
        command = plain_stop(factory, py_db, thread_id, thread, *rest)
        try:
            event = command.as_dict
            stack = _stack(factory, py_db, thread_id)
            body = {**event["body"], **stack, "threadName": thread.name}
            return type(command)(command.id, 0, {**event, "body": body}, is_json=True)
        except Exception:  # noqa: BLE001  (the session asks for the stack instead)
            return command

    def resume(thread_id: str) -> Any:
        with suppress(Exception):
            if find_thread(thread_id).additional_info.pydev_step_cmd != -1:
                return no_command
        return plain_resume(factory, thread_id)

    _until_disconnect(factory)
    setattr(factory, STOP, stop)
    setattr(factory, RESUME, resume)


def _stack(factory: Any, py_db: Any, thread_id: str) -> dict[str, Any]:
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
