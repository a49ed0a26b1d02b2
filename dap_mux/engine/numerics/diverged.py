"""Has all ranks stop after the same step where parameters differ that they should keep equal, or
from those that they had in a run that was recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field

from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.numerics.not_finite import Problem, say
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View, named
from dap_mux.pure.insight.numerics.diverge import Divergence
from dap_mux.pure.insight.numerics.diverge_live import LiveReplicas, Suspect
from dap_mux.pure.insight.numerics.diverge_trace import Line
from dap_mux.pure.protocol.rank_messages import StepTold
from dap_mux.pure.protocol.types import DIVERGED
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import arm_for_diverged, go_on, look_at_step

if TYPE_CHECKING:
    from dap_mux.pure.insight.numerics.diverge_against import RecordedRun

NO_STOP = -1
PATIENCE = 2
"""Steps that a rank may be ahead of another that has not ended one yet."""
NEXT = "`dap-mux diverge --locate -- ...` of the same job names the line that makes it differ"
NEXT_OF_RUNS = "`dap-mux diverge` of two runs by `--comm operations` names the line"


class Looked(Struct):
    """The lines of a rank's steps, and the number of the step after which it waits (`at`)."""

    at: int = 0
    lines: list[Line] = field(default_factory=list)


class DivergedStops(Struct, eq=False):
    """The engine's part for the exception filter `diverged`.

    `_armed`: the links of ranks that tell their steps; `_jobs`: what those of each group have told;
    `_asked`: groups whose ranks are being asked for more; `_parted`: that have parted from the run
    that was recorded; `_differs`: the step in which they did, and who has ended it.
    """

    _core: SessionState
    _view: View
    _stops_alone: Callable[[], None]
    _armed: dict[DebuggeeId, int | None] = {}
    _jobs: dict[str, LiveReplicas] = {}
    _asked: set[str] = set()
    _parted: set[str] = set()
    _differs: dict[str, tuple[int, set[int]]] = {}
    _problems: set[str] = set()

    def chosen(self, rank: Rank, filters: Collection[str]) -> None:
        """Tell a rank what the clients' filters, and the session's options, want of it."""
        settings = self._core.settings
        asked = settings.catch_diverged or settings.catch_unequal or settings.recorded
        tells = bool(asked) or DIVERGED in filters
        is_armed = rank.id in self._armed and self._armed[rank.id] == rank.link
        if rank.main is not None or tells == is_armed:
            return
        group = rank.rank_id[0]
        self._differs.pop(group, None)
        self._parted.discard(group)  # ranks that are started again begin with step 0
        job = self._jobs.pop(group, LiveReplicas())
        again = [each for each in self._ranks(group).values() if job.sets]  # their sets are old
        if tells:
            self._armed[rank.id] = rank.link
        else:
            del self._armed[rank.id]
        source = self._core.injected["guard_switch"]
        expression = arm_for_diverged(source, tells, settings.catch_unequal)
        ranks = {each.id: each for each in (rank, *again)}
        gather_results(self._core, ranks.values(), lambda _: expression, Problem, self._answered)

    def _answered(self, results: dict[DebuggeeId, Result[Problem]]) -> None:
        for id, (said, reply) in results.items():
            rank = self._core.ranks.get(id)
            problem = reply.problem if said is None else said.problem
            if rank is not None and problem and rank.link is not None:
                self._armed.pop(id, None)
                if problem not in self._problems:
                    self._problems.add(problem)
                    name = self._view.name_of(rank)
                    say(self._core, f"{name} does not stop where parameters part: {problem}")

    def _ranks(self, group: str) -> dict[int, Rank]:
        mains = self._core.sorted_mains()
        ours = (rank for rank in mains if rank.rank_id[0] == group and rank.phase.live)
        return {rank.rank_id[1]: rank for rank in ours if self._armed.get(rank.id) == rank.link}

    def told(self, rank: Rank, said: StepTold) -> None:
        """A rank has ended a step."""
        if rank.main is None and rank.id in self._armed:
            group, number = rank.rank_id
            recorded = self._core.settings.recorded
            if recorded is not None and group not in self._parted:
                self._compare(recorded, group, number, said)
            # With many ranks, looking at all of them costs more than reading what they tell.
            if self._jobs.setdefault(group, LiveReplicas()).add(number, said):
                self._consider(group)

    def _compare(self, recorded: RecordedRun, group: str, number: int, said: StepTold) -> None:
        """Ask all ranks for their last steps, once all have ended one that differs in some rank.

        They wait meanwhile at the end of their step. A rank that makes no steps is not awaited.
        """
        if group not in self._differs and recorded.differs(number, said):
            self._differs[group] = said.step, set()
        if group not in self._differs or group in self._asked:
            return
        step, there = self._differs[group]
        there.update({number} if said.step >= step else ())
        if self._ranks(group).keys() > there and said.step < step + PATIENCE:
            return
        self._asked.add(group)
        self._parted.add(group)
        expression = look_at_step(self._core.injected["guard_switch"], step)
        then = partial(self._compared, recorded, group, step)
        ranks = self._ranks(group).values()
        gather_results(self._core, ranks, lambda _: expression, Looked, then)

    def _compared(
        self,
        recorded: RecordedRun,
        group: str,
        step: int,
        results: dict[DebuggeeId, Result[Looked]],
    ) -> None:
        self._asked.discard(group)
        said = {id[1]: each for id, (each, _) in results.items() if each is not None}
        found = recorded.parting({number: each.lines for number, each in said.items()})
        text, more = f"step {step} is another than in {recorded.name}", []
        if found is not None:
            ranks = named(self._core, [(group, rank) for rank in found.ranks])
            who = f"{'ranks' if len(found.ranks) > 1 else 'rank'} {ranks}"
            text = f"step {found.step}, {who}, other than in {recorded.name}: {found.sentence}"
            more = [f"last equal: {found.equal}"] if found.equal else []
        stop = max((each.at for each in said.values()), default=step)
        self._go_on(group, dict.fromkeys(self._ranks(group), stop), text)
        self._stops_alone()
        told = "; ".join([text, *more, f"ranks stop after step {stop}", NEXT_OF_RUNS])
        first = self._ranks(group).get(found.ranks[0]) if found is not None else None
        say(self._core, f"diverged: {told}", first, found.other if found is not None else "")
        self._consider(group)

    def _consider(self, group: str) -> None:
        ranks = self._ranks(group)
        suspect = self._jobs[group].due(ranks) if group not in self._asked else None
        if suspect is None:
            return
        self._asked.add(group)
        source, asked = self._core.injected["guard_switch"], {*suspect.asked()}

        def expression(rank: Rank) -> str:
            number = rank.rank_id[1]
            return look_at_step(source, suspect.told[number].step if number in asked else None)

        then = partial(self._looked, group, suspect)
        gather_results(self._core, ranks.values(), expression, Looked, then)

    def _looked(
        self, group: str, suspect: Suspect, results: dict[DebuggeeId, Result[Looked]]
    ) -> None:
        self._asked.discard(group)
        looked = {id[1]: each for id, (each, _) in results.items() if each is not None}
        lines = {number: each.lines for number, each in looked.items() if each.lines}
        job = self._jobs.setdefault(group, LiveReplicas())
        found = job.judge(suspect, lines) if len(lines) > 1 else None
        if found is None:
            self._go_on(group, {}, "")
        else:
            known = [number for number in looked if number in suspect.told]
            ahead = max([0, *(looked[each].at - suspect.told[each].step for each in known)])
            text = self._text(group, found)
            stops = {number: each.step + ahead for number, each in suspect.told.items()}
            self._go_on(group, stops, text, found)
            self._stops_alone()
            step = min(stops.values())
            also = [f"also: {found.also}"] if found.also else []
            told = "; ".join([text, *also, *found.evidence, f"ranks stop after step {step}", NEXT])
            first = self._ranks(group).get(found.ranks[0])
            say(self._core, f"diverged: {told}", first, found.place)
        self._consider(group)

    def _go_on(
        self, group: str, stops: Mapping[int, int], text: str, found: Divergence | None = None
    ) -> None:
        """Have ranks run on, to stop after these steps with this text."""
        source = self._core.injected["guard_switch"]
        job = self._jobs.setdefault(group, LiveReplicas())
        what = "expression" if found is not None and found.kind == "equal" else "parameter"
        compared = {what: found.tensor} if found is not None else {}

        def expression(rank: Rank) -> str:
            number = rank.rank_id[1]
            sets, others = job.sets.get(number), job.others(number)
            return go_on(source, stops.get(number, NO_STOP), text, sets, others, compared)

        gather_results(self._core, self._ranks(group).values(), expression, Problem, lambda _: None)

    def _text(self, group: str, found: Divergence) -> str:
        ranks = named(self._core, [(group, rank) for rank in found.ranks])
        when = "before the first step" if found.step is None else f"step {found.step}"
        place = f", at {found.place}" if found.place else ""
        return f"{when}, rank {ranks}: {found.sentence}{place}"
