"""Answers to clients that wait until ranks have taken up a place's breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dap_mux.engine.breakpoints.store import Place
from dap_mux.engine.messages import faults
from dap_mux.engine.state.model import ClientRequest, Rank
from dap_mux.engine.state.session import Core
from dap_mux.rank_sets.debuggees import DebuggeeId


@dataclass(eq=False)
class _Waiter:
    place: Place
    ranks: set[DebuggeeId]
    then: Callable[[], None]
    cause: ClientRequest | None
    timer: int | None = None


class Waiters:
    """Who waits for which ranks, and for how long."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiters: list[_Waiter] = []

    def wait(
        self, place: Place, ranks: Iterable[Rank], then: Callable[[], None], limit: float
    ) -> None:
        """Call `then` once all of these have taken the place up, after `limit` seconds at most."""
        waiter = _Waiter(place, {rank.id for rank in ranks}, then, self._core.cause)
        if not waiter.ranks:
            then()
            return
        waiter.timer = self._core.after(limit, lambda: self._give_up(waiter))
        self._waiters.append(waiter)

    def arrived(self, rank: Rank, place: Place | None) -> None:
        """A rank has taken up this place; None: nothing more is to be expected of it."""
        for waiter in list(self._waiters):
            if place in (waiter.place, None):
                waiter.ranks.discard(rank.id)
                if not waiter.ranks:
                    self._give_up(waiter)

    def _give_up(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            self._core.cancel(waiter.timer)
            faults.run(self._core, waiter.cause, waiter.then)
