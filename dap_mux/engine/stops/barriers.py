"""Barrier breakpoints: a rank that reaches one waits there, untold, until its whole set is there.

A rank waits only if nothing else stops it: a breakpoint of another kind on the line, a step that
ends there and a pause win. What ends its wait is the complete set, the end of the breakpoint or of
the rank's connection, or a `continue` of that rank alone. Then the round is over for it, and the
next time that it comes by is another round.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.merge import CONDITION, HIT, Breakpoint
from dap_mux.engine.breakpoints.substitutions import values_of
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.breakpoints.union import either
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.listeners import Listeners
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.stop import AtBarrier, BarrierRound, Stop
from dap_mux.protocol.rank_messages import Evaluated
from dap_mux.rank_sets import fold, substitute
from dap_mux.rank_sets.debuggees import DebuggeeId, rank_of

REASONS: Final = frozenset({"breakpoint", "function breakpoint"})
NAMES_AFTER_S: Final = 0.3  # a rank that waits longer has it in its row's name


class Barriers:
    """The engine's part that knows who waits for whom. It owns `Rank.at_barrier`.

    It tells others, which know how: `met`: these ranks have stopped now; `freed`: these ranks run
    on; `complete`: a set whose values are to be compared; `overdue`: ranks are missing; `named`:
    the names of these ranks' rows are others now.
    """

    def __init__(
        self, core: SessionState, breakpoints: Breakpoints, edits: BreakpointEdits
    ) -> None:
        self._core = core
        self._breakpoints = breakpoints
        self._edits = edits
        self._rounds: dict[int, BarrierRound] = {}  # by their breakpoints
        self.met: Listeners[[list[Rank]]] = Listeners()
        self.freed: Listeners[[list[Rank]]] = Listeners()
        self.complete: Listeners[[BarrierRound, Breakpoint, list[Rank]]] = Listeners()
        self.overdue: Listeners[[BarrierRound, Breakpoint]] = Listeners()
        self.named: Listeners[[list[Rank]]] = Listeners()
        breakpoints.touched.add(self._changed)

    # Stops of ranks

    def takes(self, rank: Rank, stop: Stop) -> bool:
        """Whether this stop is perhaps a barrier's alone: then it is told to nobody yet."""
        self.leave(rank)
        if stop.reason not in REASONS or rank.main is not None or _obeys(rank):
            return False
        hits = stop.details.get("hitBreakpointIds")
        known = self._breakpoints.hit(rank, hits) if hits else self._all()
        if not any(item.barrier for item in known):
            return False
        rank.deferred.clear()
        rank.at_barrier = AtBarrier(stop)
        return True

    def settled(self, rank: Rank, stop: Stop) -> None:
        """The place of a stop that was taken is known."""
        here = self._hit(rank, stop)
        barrier = next((item for item in here if item.barrier), None)
        others = [item for item in here if not item.barrier]
        conditions = [_condition(self._core, rank, item) for item in others]
        if barrier is None or not all(conditions) or any(HIT in item.clean for item in others):
            self.met.tell([rank])
        elif conditions and stop.frame_id is not None:
            self._doubt(rank, stop, barrier, conditions)
        else:
            self._join(rank, barrier)

    def _hit(self, rank: Rank, stop: Stop) -> list[Breakpoint]:
        hits = stop.details.get("hitBreakpointIds")
        if hits:
            return self._breakpoints.hit(rank, hits)
        frame = (stop.frames or (None,))[0]  # older releases of debugpy do not tell what was hit
        return self._breakpoints.at(rank, frame.path, frame.line) if frame else []

    def _doubt(self, rank: Rank, stop: Stop, barrier: Breakpoint, conditions: list[str]) -> None:
        """Ask whether the condition of another breakpoint on the line has stopped the rank."""
        condition = either(CONDITION, [{CONDITION: text} for text in conditions])[CONDITION]
        asked: Body = {
            "expression": f"bool({condition}\n)",
            "frameId": stop.frame_id,
            "context": "watch",
        }

        def answered(said: Evaluated | None, _: Reply) -> None:
            if rank.at_barrier is None or rank.at_barrier.stop is not stop:
                return
            if said is not None and said.result == "False":
                self._join(rank, barrier)
            else:
                self.met.tell([rank])

        to_ranks.ask_for(self._core, rank, "evaluate", asked, Evaluated, answered)

    # Rounds

    def _join(self, rank: Rank, hit: Breakpoint) -> None:
        item = self._now(hit.since)
        if item is None or rank.at_barrier is None:
            self._free([rank])  # it was removed while the rank stopped there
            return
        round = self._rounds.get(item.since) or self._begin(item)
        rank.at_barrier.round = round
        round.here.add(rank.id)
        round.passed.discard(rank.id)
        round.awaited.discard(rank.id)
        self._name_soon(round)
        self._consider(round, item)

    def _begin(self, item: Breakpoint) -> BarrierRound:
        round = BarrierRound(item.since, "differ" if item.differ else "barrier")
        self._rounds[item.since] = round
        self._count(round, item)
        if round.awaited:
            patience = self._core.settings.barrier_timeout
            round.overdue = self._core.after(patience, lambda: self._overdue(round))
        return round

    def _count(self, round: BarrierRound, item: Breakpoint) -> None:
        wanted = (self._core.mains[id] for id in item.selection(self._core.world()))
        members: set[DebuggeeId] = {rank.id for rank in wanted if _takes_part(rank)}
        round.awaited = members - round.here - round.passed

    def _consider(self, round: BarrierRound, item: Breakpoint) -> None:
        """Once all are there, they have stopped, or are compared."""
        if round.awaited or round.complete:
            return
        round.complete = True
        ranks = self._ranks(round.here)
        if not ranks:
            self._end(round)
        elif item.differ:
            self.complete.tell(round, item, ranks)
        else:
            self.stop(round, f"{round}{self._without(round)}")

    def _without(self, round: BarrierRound) -> str:
        if not round.gone:
            return ""
        gone = fold([rank_of(id) for id in round.gone], self._core.default_group())
        return f", without rank{'s' if len(round.gone) > 1 else ''} {gone}"

    def stop(self, round: BarrierRound, text: str) -> None:
        """The ranks of a complete round have stopped; `text` says why."""
        ranks = self._end(round)
        for rank in ranks:
            if rank.standing:
                rank.standing.details["description"] = f"Paused at {text}"
        self.met.tell(ranks)

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
        self._rounds.pop(round.barrier, None)
        return self._ranks(round.here)

    def _free(self, ranks: list[Rank], round: BarrierRound | None = None) -> None:
        """These ranks run on; nothing was told of their stops, unless they were paused there."""
        if ranks:
            self.freed.tell(ranks)
        if round and round.told:
            self.named.tell(ranks)

    # Changes of a round

    def leave(self, rank: Rank, *, gone: bool = False) -> None:
        """The rank does not wait any more: it moves on, or its connection is gone."""
        at, rank.at_barrier = rank.at_barrier, None
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
            self._free([rank], at.round)

    def moved(self, rank: Rank) -> None:
        """A rank was lost, has ended or is attached: it takes part, or does not any more."""
        for round in list(self._rounds.values()) if self._rounds and rank.main is None else ():
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
        item = self._now(round.barrier)
        if item is not None:
            self._consider(round, item)

    def _changed(self) -> None:
        """Breakpoints have changed: ranks do not wait at one that is not there any more."""
        for round in list(self._rounds.values()):
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
        return next((item for item in self._all() if item.since == since and item.barrier), None)

    def _all(self) -> list[Breakpoint]:
        return [item for _, item in self._breakpoints.store.items() if not item.refusal]

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

    def done(self, rank: Rank, hits: list[int]) -> None:
        """A rank has stopped: its temporary breakpoints have done their work."""
        self._edits.stopped(rank, hits)


def _obeys(rank: Rank) -> bool:
    """Whether the rank stops because it was told to step or to pause, and not to run on then."""
    steps = any(deferred.command != "continue" for deferred in rank.deferred)
    return rank.run is not None or steps or (rank.pausing and not rank.deferred)


def _takes_part(rank: Rank) -> bool:
    """Whether others wait for this rank: neither lost nor ended, and not let go."""
    return rank.lost is None and (rank.phase.live or rank.phase.trying)


def _condition(core: SessionState, rank: Rank, item: Breakpoint) -> str:
    return substitute(str(item.clean.get(CONDITION, "")), values_of(core, rank))
