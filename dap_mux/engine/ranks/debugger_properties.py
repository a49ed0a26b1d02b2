"""debugpy's `setDebuggerProperty`: how every rank's debugger behaves, those to come included."""

from __future__ import annotations

from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.protocol.messages import plain
from dap_mux.rank_sets.debuggees import DebuggeeId

COMMAND = "setDebuggerProperty"
_TAKING = (Phase.CONFIGURING, Phase.STARTING, Phase.LIVE)  # in which a rank takes properties


class DebuggerProperties:
    """The engine's part that keeps what each client has set, for ranks that are not up yet."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._kept: dict[int, Body] = {}  # by client

    def set(self, request: ClientRequest) -> None:
        """`setDebuggerProperty`: kept, and sent to every rank that is there."""
        present = self._core.clients
        self._kept = {id: body for id, body in self._kept.items() if id in present}
        wanted = plain(request.arguments)
        self._kept.setdefault(request.client.id, {}).update(wanted)
        ranks = [rank for rank in self._core.sorted_ranks() if rank.phase in _TAKING]

        def answered(replies: dict[DebuggeeId, Reply]) -> None:
            refused = [reply.problem for reply in replies.values() if not reply.ok]
            if refused and len(refused) == len(replies):
                to_clients.refuse(self._core, request, refused[0])
            else:
                to_clients.respond(self._core, request)

        message = Broadcast(COMMAND, wanted)
        to_ranks.gather(self._core, ranks, COMMAND, lambda _: message, answered)

    def configure(self, rank: Rank) -> None:
        """Tell a rank that is new what the present clients have set."""
        for id, body in self._kept.items():
            if id in self._core.clients:
                to_ranks.ask(self._core, rank, COMMAND, body, lambda reply: None)
