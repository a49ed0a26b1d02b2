"""Notes who was let run while others stand, and tells users where they wait for those that stand.

A user who steps or continues a part of the ranks sees nothing more of them where they then wait in
a collective. After some time they are looked at, and once more later if they do not wait yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import Listeners, SessionState
from dap_mux.pure.rank_sets.world import DebuggeeId

if TYPE_CHECKING:  # only a session that finds some needs what looks for them
    from dap_mux.pure.insight.why.graph import HeldUp

LOOK_AFTER_S: Final = (2.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Pauses before each look; most steps have ended before the first."""

OnFound: TypeAlias = "Callable[[list[HeldUp]], None]"


class _Move(Struct, eq=False):
    """Ranks that were let run at the same moment, and have not stopped since."""

    ranks: set[DebuggeeId] = field(default_factory=set)
    looks: int = 0
    timer: int | None = None


class _ToldSentence(Struct, frozen=True, eq=False):
    """A sentence that users have been told and that still holds: few, however many ranks wait."""

    waiting: set[DebuggeeId]
    held: frozenset[DebuggeeId]


class PartialMoves:
    """The engine's part that owns `Rank.waits_for`.

    `due`: these ranks, which were let run, are to be looked at beside those that stand.
    """

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._stood: set[DebuggeeId] = set()
        self._moves: dict[DebuggeeId, _Move] = {}
        self._told: list[_ToldSentence] = []
        self.due: Listeners[[list[Rank], list[Rank], OnFound]] = Listeners()

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Ranks have stopped, run on, or are gone. Lean: a thousand do so at once."""
        move = _Move()
        for rank in ranks:
            if rank.main is None:
                self._look_at(rank, move)
        if move.ranks:
            self._wait(move)

    def stops_alone(self) -> None:
        """A rank stops without our asking, in its turn at a collective: the others may wait."""
        ranks = [rank for rank in self._core.sorted_mains() if rank.phase.live and not rank.stopped]
        move = _Move({rank.id for rank in ranks if rank.id not in self._moves})
        if move.ranks:
            self._moves.update(dict.fromkeys(move.ranks, move))
            self._wait(move)

    def _look_at(self, rank: Rank, move: _Move) -> None:
        """Add a rank that ran on just now to `move`."""
        if not rank.phase.live:
            self._stood.discard(rank.id)
            self._end(rank.id)
        elif rank.stopped:
            self._stood.add(rank.id)
            self._end(rank.id)
        elif rank.id in self._stood:
            self._stood.remove(rank.id)
            self._end(rank.id)
            move.ranks.add(rank.id)
            self._moves[rank.id] = move
        if self._told:
            self._tell_no_more(rank)

    def _end(self, id: DebuggeeId) -> None:
        move = self._moves.pop(id, None)
        if move is not None:
            move.ranks.discard(id)
            if not move.ranks:
                self._core.cancel(move.timer)

    def _wait(self, move: _Move) -> None:
        if move.looks < len(LOOK_AFTER_S):
            move.timer = self._core.after(LOOK_AFTER_S[move.looks], lambda: self._look(move))

    def _look(self, move: _Move) -> None:
        move.looks += 1
        run = [self._core.ranks[id] for id in sorted(move.ranks) if id in self._core.ranks]
        stand = [rank for rank in self._core.sorted_mains() if rank.stopped]
        if stand and run:
            self.due.tell(run, stand, lambda found: self._found(move, found))
        else:
            self._wait(move)

    def _found(self, move: _Move, found: list[HeldUp]) -> None:
        """Tell it, unless it is over already."""
        for one in found:
            stand = all(id in self._stood for id in one.held)
            if stand and move.ranks.issuperset(one.waiting):
                self._tell(one)
        if move.ranks:
            self._wait(move)

    def _tell(self, one: HeldUp) -> None:
        for id in one.waiting:
            self._end(id)  # once is enough
            self._name(id, one.wait)
        self._told.append(_ToldSentence(set(one.waiting), frozenset(one.held)))
        to_clients.say(self._core, one.sentence)

    def _tell_no_more(self, rank: Rank) -> None:
        """It does not wait, or does not stand, any more."""
        stands = rank.id in self._stood
        for one in [*self._told]:
            over: set[DebuggeeId] = set()
            if rank.id in one.held and not stands:
                over = one.waiting.copy()
            elif rank.id in one.waiting and (stands or not rank.phase.live):
                over = {rank.id}
            one.waiting.difference_update(over)
            if not one.waiting:
                self._told.remove(one)
            for id in sorted(over):
                self._name(id, "")

    def _name(self, id: DebuggeeId, text: str) -> None:
        rank = self._core.ranks.get(id)
        if rank is not None:
            rank.waits_for = text
            self._core.touch(rank)
