"""Callbacks for a rank's next complete stop, for instance after a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.rank_sets.debuggees import DebuggeeId

OnStop: TypeAlias = Callable[[Rank], None]


class _Waiter(Struct, frozen=True):
    then: OnStop
    old: Stop | None
    cause: ClientRequest | None


class StopWaiters(Struct, eq=False):
    """Calls back whoever waits for a rank's next stop or its end."""

    _core: SessionState
    _waiting: dict[DebuggeeId, list[_Waiter]] = {}

    def wait(self, rank: Rank, then: OnStop, old: Stop | None = None) -> None:
        """Call `then` once, when the rank has settled in another stop than `old`, or is gone."""
        self._waiting.setdefault(rank.id, []).append(_Waiter(then, old, self._core.cause))

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Call back those whose rank has arrived."""
        for rank in ranks if self._waiting else ():
            waiting = self._waiting.pop(rank.id, None)
            if waiting is not None:
                self._look(rank, waiting)

    def _look(self, rank: Rank, waiting: list[_Waiter]) -> None:
        here = [one for one in waiting if _arrived(rank, one.old)]
        stay = [one for one in waiting if one not in here]
        if stay:
            self._waiting[rank.id] = stay
        for one in here:
            self._core.later(partial(one.then, rank), one.cause)


def _arrived(rank: Rank, old: Stop | None) -> bool:
    if not rank.phase.live:
        return True
    return rank.stopped and rank.stop is not old
