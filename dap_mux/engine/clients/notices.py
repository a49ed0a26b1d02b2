"""Messages from the session to the users of its clients."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import fold


class Notices(Struct, eq=False):
    """The engine's part that tells controllers more than DAP has events for."""

    _core: SessionState
    _lasting: list[str] = []

    def notice(self, text: str, *, lasting: bool = False) -> None:
        """Tell every controller, configured or not: why ranks fail may be known that early.

        `lasting`: those that attach later are told as well.
        """
        if lasting:
            self._lasting.append(text)
        for client in list(self._core.clients.values()):
            if client.role == "controller":
                self.tell(client, text)

    def tell(self, client: Client, text: str) -> None:
        """Tell one client."""
        body: Body = {"category": "stderr", "output": f"dap-mux: {text}\n"}
        to_clients.send_event(self._core, client, "output", body)

    def tell_lasting(self, client: Client) -> None:
        """Tell a client that has just attached what was said before."""
        for text in self._lasting:
            self.tell(client, text)


# Tells clients how far attaching many ranks has come, and who is still missing.

QUIET_PERIOD_S: Final = 0.5  # attaching that is done by then needs no toast
UPDATE_INTERVAL_S: Final = 0.25  # between two updates
ABSENT_AFTER_S: Final = 2.0  # then the user is told which ranks are not there
DONE: Final = frozenset({Phase.LIVE, Phase.GONE, Phase.RELEASED, Phase.WAITING, Phase.IDLE})


class Progress(Struct, eq=False):
    """The engine's part that owns progress events (DAP: progressStart, -Update, -End)."""

    _core: SessionState
    _clients: list[Client] = []
    _id: str = ""
    _timer: int | None = None

    def watch(self) -> None:
        """Ranks are being attached: say so if it takes a while."""
        if self._timer is None and not self._core.single:
            self._timer = self._core.after(QUIET_PERIOD_S, self._tick)
            self._core.after(ABSENT_AFTER_S, self._name_absent)

    def _tick(self) -> None:
        self._timer = None
        if not self._under_way() or not self._core.flow.configured:
            self.end()
            return
        if not self._id:
            self._start()
        self._say("progressUpdate", {"message": self._message(), "percentage": self._percent()})
        self._timer = self._core.after(UPDATE_INTERVAL_S, self._tick)

    def _start(self) -> None:
        self._id = f"dap-mux-attach-{self._core.number()}"
        willing = (c for c in self._core.controllers() if c.about.supportsProgressReporting)
        self._clients = list(willing)
        title = f"Attaching to {len(self._core.mains)} ranks"
        self._say("progressStart", {"title": title, "cancellable": False})

    def end(self) -> None:
        """Attaching is done, or the session is over."""
        if self._id:
            self._say("progressEnd", {"message": self._message()})
        self._id, self._clients = "", []

    def _say(self, event: str, body: Body) -> None:
        for client in self._clients:
            to_clients.send_event(self._core, client, event, {"progressId": self._id, **body})

    def _under_way(self) -> bool:
        return any(rank.phase not in DONE for rank in self._core.mains.values())

    def _attached(self) -> list[Rank]:
        return [rank for rank in self._core.sorted_mains() if rank.phase.live]

    def _percent(self) -> float:
        return round(100 * len(self._attached()) / max(1, len(self._core.mains)), 1)

    def _message(self) -> str:
        return f"{len(self._attached())} of {len(self._core.mains)} attached"

    def _name_absent(self) -> None:
        absent = [rank for rank in self._core.sorted_mains() if rank.phase is Phase.WAITING]
        if not absent or not self._core.flow.configured:
            return
        who = fold((rank.rank_id for rank in absent), self._core.settings.default_group)
        text = f"dap-mux: waiting for rank {who}: {absent[0].reason}\n"
        to_clients.broadcast(self._core, "output", {"category": "console", "output": text})
