"""Callbacks for a rank's next complete stop, for instance after a step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.stop import Stop
from dap_mux.rank_sets.debuggees import DebuggeeId

OnStop: TypeAlias = Callable[[Rank], None]


class _Waiter(Struct, frozen=True):
    then: OnStop
    old: Stop | None
    cause: ClientRequest | None


class StopWaiters:
    """Is told whenever a rank moves, and tells those who wait for its next stop or its end."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._waiting: dict[DebuggeeId, list[_Waiter]] = {}

    def wait(self, rank: Rank, then: OnStop, old: Stop | None = None) -> None:
        """Call `then` once, when the rank has settled in another stop than `old`, or is gone."""
        self._waiting.setdefault(rank.id, []).append(_Waiter(then, old, self._core.cause))

    def moved(self, rank: Rank) -> None:
        """The rank's state has changed."""
        waiting = self._waiting.pop(rank.id, None) if self._waiting else None
        if waiting is None:
            return
        here = [one for one in waiting if _arrived(rank, one.old)]
        stay = [one for one in waiting if one not in here]
        if stay:
            self._waiting[rank.id] = stay
        for one in here:
            self._core.later(partial(one.then, rank), one.cause)


def _arrived(rank: Rank, old: Stop | None) -> bool:
    if not rank.phase.live:
        return True
    return rank.stop is not None and rank.stop.settled and rank.stop is not old
