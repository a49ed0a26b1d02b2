"""Barrier breakpoints: a rank that reaches one waits there until its whole set is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.breakpoints.store import FUNCTIONS
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.breakpoints.union import decide
from dap_mux.engine.state.rank import AtBarrier, BarrierRound, Frame, Rank, Stop
from dap_mux.engine.state.session import Listeners, SessionState
from dap_mux.pure.protocol.rank_messages import Held
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.pure.rank_sets.world import DebuggeeId, rank_of

REASONS: Final = frozenset({"breakpoint", "function breakpoint"})
NAMES_AFTER_S: Final = 0.3  # a rank that waits longer has it in its row's name
PATIENCE_S: Final = 1.0  # of the first round that may fail; of each further one twice as long
MOST_DOUBLED: Final = 6
STOPS_WITHIN_S: Final = 5.0  # a rank that is told to stop in a condition; then it is told later


# A rank waits in the breakpoint's condition, unless something else stops it: a breakpoint of
# another kind on the line, a step that ends there and a pause win. What ends its wait is the
# complete set, the end of the breakpoint or of the rank's connection, or a `continue`. Then the
# round is over for it, and the next time that it comes by is another round.
#
# Where a barrier is set while ranks run, some have passed the line and perhaps wait for those
# before it, in a collective. So its first rounds may fail: all run on, which brings ranks that wait
# for each other into step, and the next round has more patience. Once all have met no round fails
# any more.
class Barriers:
    """The engine's part that knows who waits for whom. It owns `Rank.at_barrier`.

    It tells others, which know how: `met`: these ranks have stopped now; `freed`: these ranks run
    on; `complete`: a set whose values are to be compared; `overdue`: ranks are missing; `named`:
    the names of these ranks' rows are others now; `paused`: one has stopped in its condition, as it
    was asked to, and still waits.
    """

    def __init__(
        self, core: SessionState, breakpoints: Breakpoints, edits: BreakpointEdits
    ) -> None:
        self._core = core
        self._breakpoints = breakpoints
        self.edits = edits
        self._rounds: dict[int, BarrierRound] = {}  # by their breakpoints
        # Reports of ranks that are not attached yet, with their links.
        self._early: dict[DebuggeeId, tuple[int | None, Held]] = {}
        self.met: Listeners[[list[Rank]]] = Listeners()
        self.freed: Listeners[[list[Rank]]] = Listeners()
        self.complete: Listeners[[BarrierRound, Breakpoint, list[Rank]]] = Listeners()
        self.overdue: Listeners[[BarrierRound, Breakpoint]] = Listeners()
        self.named: Listeners[[list[Rank]]] = Listeners()
        self.paused: Listeners[[Rank]] = Listeners()
        breakpoints.touched.add(self._changed)

    # Waits of ranks

    def held(self, rank: Rank, said: Held) -> None:
        """A rank waits in the condition of a barrier, and has reported its value."""
        self.leave(rank)
        item = self._now(said.breakpoint)
        if rank.phase.handshake:  # it ran before the session came, and has its breakpoints already
            self._early[rank.id] = rank.link, said
        elif rank.stop or _obeys(rank) or not rank.phase.live:
            decide(self._core, rank, said.hold, stops=True)
        elif item is None or not item.barrier or rank.main is not None:
            decide(self._core, rank, said.hold, stops=False)
        else:
            path = self._breakpoints.store.place_of(item) or FUNCTIONS
            frame = Frame(path, said.function, said.line) if path != FUNCTIONS else None
            rank.at_barrier = AtBarrier(said.hold, said.value, said.problem, frame)
            self._enter(rank, rank.at_barrier, item)

    def ends_wait(self, rank: Rank, stop: Stop) -> bool:
        """Whether this is the stop of a rank that was told to stop there.

        Else it waits no longer: another thread of it has stopped.
        """
        at = rank.at_barrier
        hits = stop.details.get("hitBreakpointIds")
        known = self._breakpoints.hit(rank, hits) if hits else []
        elsewhere = known and not any(item.barrier for item in known)
        if at and at.stops and not rank.stop and stop.reason in REASONS and not elsewhere:
            return True
        self.leave(rank)
        return False

    def settled(self, rank: Rank, at: AtBarrier) -> None:
        """The place of such a stop is known."""
        at.stands = True
        if at.round is None and at.passes:
            self._free([rank])
        elif at.round is None:
            self.met.tell([rank])  # of the others clients have been told
        elif at.round.stops:
            self._meet_once_all_stand(at.round)
        elif at.shown:
            self.paused.tell(rank)

    def pause(self, rank: Rank) -> bool:
        """Let a rank that waits stop and be shown to clients, though it still waits.

        False where it does not wait.
        """
        at = rank.at_barrier
        if at is None or rank.stopped:
            return False
        at.shown = True
        if not at.stands:
            self._core.set_pausing(rank, True)
            self._stop_there(rank)
        elif at.round:
            self.paused.tell(rank)
        else:
            self.met.tell([rank])
        return True

    def _stop_there(self, rank: Rank) -> None:
        """Let it stop at the line; nothing to do for one that was told so before."""
        at = rank.at_barrier
        if at and not at.stops:
            at.stops = True
            decide(self._core, rank, at.number, stops=True)

    # Rounds

    def _enter(self, rank: Rank, at: AtBarrier, item: Breakpoint) -> None:
        round = self._rounds.get(item.since) or self._begin(item)
        at.round = round
        round.here.add(rank.id)
        round.passed.discard(rank.id)
        round.awaited.discard(rank.id)
        self._name_soon(round)
        if round.stops:
            self._stop_there(rank)  # it comes late
        self._consider(round, item)

    def _begin(self, item: Breakpoint) -> BarrierRound:
        round = BarrierRound(item.since, "differ" if item.differ else "barrier")
        self._rounds[item.since] = round
        self._count(round, item)
        if round.awaited:
            told_after = self._core.settings.barrier_timeout
            if item.tries is not None:
                self._limit(round, item.tries)
                told_after -= PATIENCE_S * (2**item.tries - 1)  # the rounds that have failed
            if told_after > 0:
                round.overdue = self._core.after(told_after, lambda: self._overdue(round))
        return round

    def _limit(self, round: BarrierRound, tries: int) -> None:
        patience = PATIENCE_S * 2 ** min(tries, MOST_DOUBLED)
        round.patience = self._core.after(patience, lambda: self._out_of_patience(round))

    def _out_of_patience(self, round: BarrierRound) -> None:
        """A round fails, unless a rank that is missing stands where its user wants it."""
        item = self._now(round.barrier)
        if item is None or item.tries is None or round.complete:
            return
        if any(rank.stop for rank in self._ranks(round.awaited)):
            self._limit(round, item.tries)
            return
        item.tries += 1
        ranks = self._end(round)
        waiting = [rank for rank in ranks if not rank.stopped]
        self.met.tell([rank for rank in ranks if rank.stopped])  # paused there by a user
        self._free(waiting, round)

    def _count(self, round: BarrierRound, item: Breakpoint) -> None:
        wanted = [self._core.mains[id] for id in item.selection(self._core.world())]
        members: set[DebuggeeId] = {rank.id for rank in wanted if _takes_part(rank)}
        round.gone |= round.awaited & {rank.id for rank in wanted} - members
        round.awaited = members - round.here - round.passed

    def _consider(self, round: BarrierRound, item: Breakpoint) -> None:
        """Once all are there, they have stopped, or are compared."""
        if round.awaited or round.complete:
            return
        round.complete, item.tries = True, None
        ranks = self._ranks(round.here)
        if not ranks:
            self._end(round)
        elif item.differ:
            self.complete.tell(round, item, ranks)
        else:
            self.stop(round, self._without(round))

    def _without(self, round: BarrierRound) -> str:
        if not round.gone:
            return ""
        gone = fold([rank_of(id) for id in round.gone], self._core.default_group())
        return f"without rank{'s' if len(round.gone) > 1 else ''} {gone}"

    def stop(self, round: BarrierRound, text: str, outliers: Iterable[RankId] = ()) -> None:
        """The ranks of a complete round have stopped, or do so now; `text` says more about it."""
        round.stops, round.text, round.outliers = f"At {round}", text, frozenset(outliers)
        for rank in self._ranks(round.here):
            self._stop_there(rank)
        self._core.cancel(round.overdue)
        round.overdue = self._core.after(STOPS_WITHIN_S, lambda: self._meet(round))
        self._meet_once_all_stand(round)

    def _meet_once_all_stand(self, round: BarrierRound) -> None:
        ranks = self._ranks(round.here)
        if all(map(_stands, ranks)):
            self._meet(round)

    def _meet(self, round: BarrierRound) -> None:
        """Tell of all that stand; the others, one by one, as they stop."""
        ranks = self._end(round)
        for rank in ranks:
            if rank.stop and _stands(rank):
                rank.stop.details["description"] = round.stops
                if round.text:
                    rank.stop.details["text"] = round.text
                rank.stop.is_outlier = rank.rank_id in round.outliers
            elif rank.at_barrier:
                rank.at_barrier.round = None
        self.met.tell([rank for rank in ranks if _stands(rank)])

    def pass_on(self, round: BarrierRound) -> None:
        """The ranks of a complete round run on, and clients hear nothing of it."""
        self._free(self._end(round), round)

    def waits(self, round: BarrierRound) -> bool:
        """Whether a round is still under way."""
        return self._rounds.get(round.barrier) is round

    def _end(self, round: BarrierRound) -> list[Rank]:
        """Forget a round; return the ranks that were there."""
        self._core.cancel(round.overdue)
        self._core.cancel(round.naming)
        self._core.cancel(round.patience)
        self._rounds.pop(round.barrier, None)
        return self._ranks(round.here)

    def _free(self, ranks: list[Rank], round: BarrierRound | None = None) -> None:
        """These ranks run on; nothing was told of their stops, unless they were paused there."""
        stand = []
        for rank in ranks:
            if _stands(rank):
                stand.append(rank)
            else:
                self._let_on(rank)
        if stand:
            self.freed.tell(stand)
        if round and round.told:
            self.named.tell(ranks)

    def _let_on(self, rank: Rank) -> None:
        at = rank.at_barrier
        self.leave(rank)
        if at and at.stops:  # and so it stops first
            at.round, at.passes = None, not at.shown
            rank.at_barrier = at

    # Changes of a round

    def leave(self, rank: Rank, *, gone: bool = False) -> None:
        """The rank does not wait any more: it moves on, or its connection is gone."""
        at, rank.at_barrier = rank.at_barrier, None
        if at and not at.stops and not gone:
            decide(self._core, rank, at.number, stops=False)
        round = at.round if at else None
        if round is None or not self.waits(round):
            return
        round.here.discard(rank.id)
        (round.gone if gone else round.passed).add(rank.id)
        self._name_soon(round)
        self._again(round)

    def let_go(self, rank: Rank) -> None:
        """A rank that waits is told to run on, alone."""
        at = rank.at_barrier
        if at is not None:
            at.shown = False
            self._core.set_pausing(rank, False)
            self._free([rank], at.round)

    def begin_anew(self) -> None:
        """All that waited were told to run on: they may be out of step then."""
        for round in [round for round in self._rounds.values() if not round.here]:
            self._end(round)
            item = self._now(round.barrier)
            if item is not None:
                item.tries = 0

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Ranks were lost, have ended or are attached: they take part, or do not any more."""
        for rank in ranks if self._rounds or self._early else ():
            if rank.main is None:
                self._count_again(rank)
            if rank.id in self._early and not rank.phase.handshake:
                link, said = self._early.pop(rank.id)
                if link == rank.link:
                    self.held(rank, said)

    def _count_again(self, rank: Rank) -> None:
        for round in list(self._rounds.values()):
            if rank.id in round.awaited and not _takes_part(rank):
                round.awaited.discard(rank.id)
                round.gone.add(rank.id)
                self._again(round)
            elif rank.id not in round.awaited | round.here | round.passed and rank.phase.live:
                item = self._now(round.barrier)
                if item and item.selects(rank.id, self._core.world()):
                    round.awaited.add(rank.id)
                    round.gone.discard(rank.id)

    def _again(self, round: BarrierRound) -> None:
        if round.stops:
            self._meet_once_all_stand(round)
            return
        item = self._now(round.barrier)
        if item is not None:
            self._consider(round, item)

    def _changed(self) -> None:
        """Breakpoints have changed: ranks do not wait at one that is not there any more."""
        for round in [round for round in self._rounds.values() if not round.stops]:
            item = self._now(round.barrier)
            if item is None or bool(item.differ) is not (round.word == "differ"):
                self._free(self._end(round), round)
                continue
            world = self._core.world()
            left = [r for r in self._ranks(round.here) if not item.selects(r.id, world)]
            self._free(left, round)
            if self.waits(round):
                self._count(round, item)
                self._consider(round, item)

    def _now(self, since: int) -> Breakpoint | None:
        """Return a barrier as its client has sent it last, None if it was removed."""
        items = (item for _, item in self._breakpoints.store.items() if not item.refusal)
        return next((item for item in items if item.since == since and item.barrier), None)

    # Telling

    def _name_soon(self, round: BarrierRound) -> None:
        if round.awaited and round.naming is None:
            round.naming = self._core.after(NAMES_AFTER_S, lambda: self._name(round))

    def _name(self, round: BarrierRound) -> None:
        round.naming, before, round.told = None, round.told, str(round)
        if round.told != before:
            self.named.tell(self._ranks(round.here))

    def _overdue(self, round: BarrierRound) -> None:
        item = self._now(round.barrier)
        if item is not None and round.awaited:
            self.overdue.tell(round, item)

    def _ranks(self, ids: Iterable[DebuggeeId]) -> list[Rank]:
        return [self._core.ranks[id] for id in sorted(ids) if id in self._core.ranks]


def _obeys(rank: Rank) -> bool:
    """Whether the rank stops because it was told to step or to pause, and not to run on then."""
    steps = any(deferred.command != "continue" for deferred in rank.deferred)
    return rank.run is not None or steps or (rank.pausing and not rank.deferred)


def _takes_part(rank: Rank) -> bool:
    """Whether others wait for this rank: neither lost nor ended, not let go, and able to wait."""
    there = rank.phase.live or rank.phase.trying
    return there and rank.lost is None and not rank.connection.cannot_wait


def _stands(rank: Rank) -> bool:
    """Whether it has stopped at a place that is known, though perhaps no client sees it yet."""
    return rank.stopped or (rank.at_barrier is not None and rank.at_barrier.stands)
