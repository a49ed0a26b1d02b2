"""Tell the session which actors of Monarch this process is, now and from now on.

It goes out as telemetry, which editors do not show. Private interfaces of debugpy, so whoever calls
this must expect any exception; where nothing is told, a rank has the name of its first actor.
"""

from __future__ import annotations

import sys
from typing import Any

ACTORS = "dap_mux.frameworks.monarch_actors"
HANDLER = "monarch._src.actor.actor_mesh"
STOP = "make_thread_suspend_single_notification"
EVENT = "dap-mux: an actor"
"""The output by which an actor is told."""


def tell_actors(debugger: Any) -> None:
    """From now on `debugger`, a PyDB, tells of actors; nothing where there are none."""
    actors: Any = sys.modules.get(ACTORS)
    if actors is None:
        return
    command = type(debugger.cmd_factory.make_thread_killed_message(1))

    def tell(actor: dict[str, Any]) -> None:
        body = {"category": "telemetry", "output": EVENT, "data": actor}
        event = {"type": "event", "event": "output", "body": body}
        debugger.writer.add_command(command(0, 0, event, is_json=True))

    actors.tell_by(tell)
    _tell_at_stops(debugger)


def _tell_at_stops(debugger: Any) -> None:
    """The event of a stop has the actor whose code has stopped, as `stop_details` has the stack."""
    factory = debugger.cmd_factory
    plain_stop = vars(factory)[STOP]

    def stop(py_db: Any, thread_id: str, *rest: Any) -> Any:
        command = plain_stop(py_db, thread_id, *rest)
        try:
            frames = py_db.suspended_frames_manager.get_frames_list(thread_id)
            event = command.as_dict
            body = {**event["body"], "actor": _actor(next(iter(frames)))}
            return type(command)(command.id, 0, {**event, "body": body}, is_json=True)
        except Exception:  # noqa: BLE001  (then it is not known)
            return command

    setattr(factory, STOP, stop)


def _actor(frame: Any) -> dict[str, Any] | None:
    """Return the actor that this frame is in; its number and its place are those of the call."""
    while frame is not None:
        if frame.f_globals.get("__name__") == HANDLER and "ctx" in frame.f_code.co_varnames:
            context = frame.f_locals["ctx"]
            point, labels = context.message_rank, list(context.message_rank)
            sizes, places = [point.size(each) for each in labels], [point[each] for each in labels]
            name = context.actor_instance.name
            return {"name": name, "rank": point.rank, "mesh": [labels, sizes, places]}
        frame = frame.f_back
    return None
