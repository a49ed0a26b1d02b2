"""The event `ranks`: what changed of which ranks, for clients that asked to hear it.

Changes within a moment are one event. The other clients get standard DAP and nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dap_mux.engine import outputs
from dap_mux.engine.messages import to_clients
from dap_mux.engine.session.list import counts_of, entry
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View
from dap_mux.rank_sets.debuggees import DebuggeeId

# Reports when the debugger holds ranks stopped, because a cluster may give up on silent ones.


class Pauses:
    """Counts the ranks that are stopped."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._stopped: set[DebuggeeId] = set()

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Report the first rank that stops, and the last that continues."""
        before = bool(self._stopped)
        for rank in ranks:
            if rank.stopped:
                self._stopped.add(rank.id)
            else:
                self._stopped.discard(rank.id)
        if bool(self._stopped) != before:
            self._core.out.append(outputs.Paused(not before))


EVENT: Final = "ranks"
COALESCE_WINDOW_S: Final = 0.05


class RanksEvent:
    """The engine's part that tells what `list` would show anew."""

    def __init__(self, core: SessionState, view: View) -> None:
        self._core = core
        self._view = view
        self._changed: dict[DebuggeeId, Rank] = {}
        self._timer: int | None = None

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Send these rows within a moment, if any client asked for them."""
        for client in self._core.clients.values():  # no generator: a rank that attaches moves often
            if EVENT in client.events:
                self._changed.update((rank.id, rank) for rank in ranks)
                if self._timer is None:
                    self._timer = self._core.after(COALESCE_WINDOW_S, self._tell)
                return

    def _tell(self) -> None:
        self._timer = None
        changed, self._changed = sorted(self._changed.items()), {}
        ranks = [rank for id, rank in changed if id in self._core.ranks or _has_ended(rank)]
        body: Body = {
            "changed": [entry(self._core, self._view, rank) for rank in ranks],
            "counts": counts_of(self._core.ranks.values()),
        }
        for client in list(self._core.clients.values()):
            if EVENT in client.events:
                to_clients.send_event(self._core, client, EVENT, body)


def _has_ended(worker: Rank) -> bool:
    """A worker's last news: it is forgotten at once, and stays in no list."""
    return worker.main is not None and worker.phase in (Phase.GONE, Phase.RELEASED)
