"""What happens to each event of a rank: one row each, complete against the DAP schema.

A row is the method of `RankEvents` that handles it, or None where the event is never passed on and
needs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Raw

from dap_mux.engine.events.rank_events import RankEvents
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank
from dap_mux.protocol.messages import Message
from dap_mux.protocol.rank_messages import Held, event_body, read, stopped_body

EventHandler: TypeAlias = Callable[[RankEvents, Rank, Body], None]


def _with_our_ids(event: str) -> EventHandler:
    """Pass the event on to the clients, its ids exchanged for ours."""
    return lambda events, rank, body: events.translated(event, rank, body)


def _stopped(events: RankEvents, rank: Rank, body: Raw) -> None:
    events.stopped(rank, *stopped_body(body))


# Frequent events: a thousand ranks may send them at once, so only the fields in use are decoded.
READ_AT_ONCE: Final[Mapping[str, Callable[[RankEvents, Rank, Raw], None]]] = {
    "stopped": _stopped,
    "dapMuxHeld": lambda events, rank, body: events.held(rank, read(body, Held)),
}
WHOLE: Final[Mapping[str, EventHandler | None]] = {
    "initialized": RankEvents.initialized,
    "continued": RankEvents.continued,
    "exited": RankEvents.exited,
    "terminated": RankEvents.terminated,
    "thread": RankEvents.thread,
    "output": RankEvents.output,
    "breakpoint": RankEvents.breakpoint,
    "module": RankEvents.module,
    "loadedSource": RankEvents.loaded_source,
    "process": RankEvents.process,
    "capabilities": RankEvents.capabilities,
    "progressStart": _with_our_ids("progressStart"),
    "progressUpdate": _with_our_ids("progressUpdate"),
    "progressEnd": _with_our_ids("progressEnd"),
    "invalidated": RankEvents.invalidated,
    "memory": _with_our_ids("memory"),
    "debugpySockets": RankEvents.sockets,
    "dapMuxServed": RankEvents.served,
    "dapMuxMark": RankEvents.marked,
    "debugpyAttach": RankEvents.child,
    "debugpyWaitingForServer": None,
}
EVENT_TABLE: Final[Mapping[str, object]] = {**WHOLE, **READ_AT_ONCE}


def dispatch(events: RankEvents, rank: Rank, message: Message) -> None:
    """Hand a rank's event to its row. Raises `PeerFault` where it is not what DAP says."""
    event = message.event
    if event in READ_AT_ONCE:
        READ_AT_ONCE[event](events, rank, message.body)
        return
    body = event_body(event, message.body)
    if event not in WHOLE:
        events.unknown(rank, event, body)
        return
    handler = WHOLE[event]
    if handler is not None:
        handler(events, rank, body)
