"""The lease: which agent drives the job; every act of a client that moves ranks is logged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import AGENT, Client, ClientRequest
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.stops.control import Control, held
from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import one_line
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.types import CastArguments, LeaseArguments
from dap_mux.pure.protocol.validation import typed

EVENT: Final = "lease"
MAX_TEXT: Final = 80
"""Characters of a client's own words: its name, a rank set."""
ACTS: Final[Mapping[str, str]] = {
    "continue": "continuing",
    "pause": "pausing",
    **dict.fromkeys(("next", "stepIn", "stepOut"), "stepping"),
    "goto": "jumping",
    "restart": "restarting",
    "terminate": "terminating",
    **dict.fromkeys(("release", "drop"), "releasing"),
}
WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("c", "cont", "continue"), "continuing"),
    **dict.fromkeys(("n", "next", "s", "step", "r", "return"), "stepping"),
    **dict.fromkeys(("unt", "until"), "continuing"),
    **dict.fromkeys(("j", "jump"), "jumping"),
    "pause": "pausing",
}
"""Commands of `cast` that move ranks."""


# An agent takes the lease by driving, or by the request. Any other client that moves a rank takes
# it over at once; the agent's next act is refused, until it takes the lease again. What an agent
# holds when it is gone runs on, though others are attached: they were watching it.
class Lease(Struct, eq=False):
    """The engine's part that knows which agent drives."""

    _core: SessionState
    _control: Control
    _holder: Client | None = None
    _act: str = ""
    _lost: dict[int, str] = {}  # agents whose lease was taken over, and by whom

    def lease(self, request: ClientRequest) -> None:
        """`lease`: take it, release it, or ask who has it."""
        action, client = typed(request.arguments, LeaseArguments).action, request.client
        if action and client.role != "controller":
            raise UsageError("an observer may query the lease, but not take it")
        if action == "take":
            self._take(client, "")
        elif action == "release" and self._holder is client:
            self._end(f"{_name(client)} no longer drives")
        body = {**self._body(), "lostTo": self._lost.get(client.id, "")}
        to_clients.respond(self._core, request, body)

    def acts(self, request: ClientRequest) -> None:
        """Note an act before it is done. Raises UsageError for an agent without the lease."""
        act = _act_of(request)
        if not act:
            return
        client = request.client
        if client.about.clientID == AGENT:
            if client.id in self._lost:
                text = f"{self._lost[client.id]} has taken over: take the lease to go on"
                raise UsageError(text)
            self._take(client, act)
        elif self._holder is not None:
            self._lost[self._holder.id] = _name(client)
            self._end(f"{_name(client)} takes over from {_name(self._holder)}")
        self._core.log(logging.INFO, "client", f"{_name(client)} (client {client.id}): {act}")

    def _take(self, client: Client, act: str) -> None:
        if self._holder not in (None, client):
            raise UsageError("another agent drives: wait until it releases the lease")
        self._lost.pop(client.id, None)
        begins, self._holder, self._act = self._holder is None, client, act
        if begins:
            text = f"{_name(client)} drives; whatever you let run, step or pause takes over"
            self._say(text, but=client)
        self._tell()

    def _end(self, text: str) -> None:
        self._holder, self._act = None, ""
        self._say(text)
        self._tell()

    def left(self, client: Client) -> None:
        """Let run on what an agent has held that is gone. Ranks with an exception stay."""
        self._lost.pop(client.id, None)
        if self._holder is not client:
            return
        self._end(f"{_name(client)} has left: what it held runs on")
        ranks = self._core.sorted_ranks()
        stopped = [rank for rank in ranks if rank.stop and rank.phase.live and not held(rank)]
        self._control.client_events.resumed(self._control.resume(stopped))

    def _body(self) -> Body:
        return {"holder": _name(self._holder) if self._holder else "", "act": self._act}

    def _say(self, text: str, but: Client | None = None) -> None:
        """Tell every controller, but for this one."""
        for client in self._core.controllers():
            if client is not but:
                to_clients.say_to(self._core, client, text)

    def _tell(self) -> None:
        to_clients.send_to_listeners(self._core, EVENT, self._body())


def _name(client: Client) -> str:
    """Return what a client calls itself, bounded and on one line."""
    return one_line(client.about.clientID or "a client")[:MAX_TEXT]


def _act_of(request: ClientRequest) -> str:
    """Return what a request does to ranks, `stepping 0-3`; "" if it moves none."""
    if request.command != "cast":
        return ACTS.get(request.command, "")
    arguments = typed(request.arguments, CastArguments)
    word = WORDS.get(arguments.command.strip().partition(" ")[0], "")
    return f"{word} {one_line(arguments.ranks)[:MAX_TEXT]}" if word else ""
