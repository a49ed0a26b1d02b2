"""Responses that wait until ranks have acknowledged a place's breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dap_mux.engine.breakpoints.store import Place
from dap_mux.engine.messages.join import Join
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.rank_sets.debuggees import DebuggeeId


class BreakpointAcks:
    """Tracks which ranks still have to acknowledge the breakpoints of which place."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._joins: list[tuple[Place, Join[DebuggeeId]]] = []

    def wait(
        self, place: Place, ranks: Iterable[Rank], then: Callable[[], None], limit: float
    ) -> None:
        """Call `then` once all these ranks have acknowledged, after `limit` seconds at most."""
        self._forget_ended()
        join = Join(self._core, (rank.id for rank in ranks), lambda missing: then(), limit)
        self._joins.append((place, join))

    def arrived(self, rank: Rank, place: Place | None) -> None:
        """A rank has acknowledged this place; None: all places, because it is gone."""
        if not self._joins:
            return
        for awaited, join in list(self._joins):
            if place in (awaited, None):
                join.arrive(rank.id)
        self._forget_ended()

    def _forget_ended(self) -> None:
        self._joins = [(place, join) for place, join in self._joins if not join.over]
