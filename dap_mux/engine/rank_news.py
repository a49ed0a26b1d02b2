"""The event `ranks`: what changed of which ranks, for clients that asked to hear it.

Changes within a moment are one event (DESIGN.md, "Custom requests"); everyone else hears standard
DAP and nothing more.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine import downstream
from dap_mux.engine.commands.list import counts_of, entry
from dap_mux.engine.core import Core
from dap_mux.engine.model import Body, Rank
from dap_mux.engine.view import View
from dap_mux.rank_sets import RankId

EVENT: Final = "ranks"
MOMENT: Final = 0.05  # s


class RankNews:
    """The engine's part that tells what `list` would show anew."""

    def __init__(self, core: Core, view: View) -> None:
        self._core = core
        self._view = view
        self._changed: set[RankId] = set()
        self._timer: int | None = None

    def moved(self, rank: Rank) -> None:
        """What `list` shows of this rank has changed."""
        if not any(EVENT in client.events for client in self._core.clients.values()):
            return
        self._changed.add(rank.id)
        if self._timer is None:
            self._timer = self._core.after(MOMENT, self._tell)

    def _tell(self) -> None:
        self._timer = None
        ranks = [rank for rank in self._core.sorted_ranks() if rank.id in self._changed]
        self._changed.clear()
        body: Body = {
            "changed": [entry(self._core, self._view, rank) for rank in ranks],
            "counts": counts_of(self._core.ranks.values()),
        }
        for client in list(self._core.clients.values()):
            if EVENT in client.events:
                downstream.send_event(self._core, client, EVENT, body)
