"""Differ breakpoints: the ranks of a complete barrier run on, unless their values differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.evaluate.fan_out import FanOutEvaluator
from dap_mux.engine.evaluate.fold import most_first
from dap_mux.engine.evaluate.replies import Answers
from dap_mux.engine.evaluate.value_summaries import summarised_unless_plain
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.stop import BarrierRound
from dap_mux.engine.state.threads import coords_of
from dap_mux.engine.stops.barriers import Barriers
from dap_mux.insight.compare import Tolerance, compare
from dap_mux.rank_sets import RankId, fold
from dap_mux.rank_sets.differ import Differ

MAX_CHARS: Final = 60  # of a value that is shown
MAX_VALUES: Final = 6


class DifferBreakpoints:
    """The engine's part that decides whether ranks have stopped at a differ breakpoint."""

    def __init__(self, core: SessionState, fan_out: FanOutEvaluator, barriers: Barriers) -> None:
        self._core = core
        self._fan_out = fan_out
        self._barriers = barriers

    def decide(self, round: BarrierRound, item: Breakpoint, ranks: list[Rank]) -> None:
        """All ranks of a round are there: compare what they have told, or evaluate it in them."""
        told: dict[RankId, str] = {}
        silent = []
        for rank in ranks:
            hold = rank.at_barrier.hold if rank.at_barrier else None
            if hold is None:
                silent.append(rank)
            else:
                told[rank.rank_id] = hold.value
        if silent:
            text = summarised_unless_plain(self._core.injected["tensor_summary"], item.compared)
            then = partial(self._answered, round, item, told)
            self._fan_out.evaluate(silent, text, then, depth=0)
        elif len(set(told.values())) == 1:
            self._barriers.pass_on(round)
        else:
            self._compare(round, item, told, {})

    def _answered(
        self, round: BarrierRound, item: Breakpoint, told: dict[RankId, str], answers: Answers
    ) -> None:
        if self._barriers.waits(round):
            texts = told | {id: answer.value for id, answer in answers.values.items()}
            self._compare(round, item, texts, self._failed(round, answers))

    def _compare(
        self,
        round: BarrierRound,
        item: Breakpoint,
        texts: dict[RankId, str],
        failed: dict[RankId, str],
    ) -> None:
        if item.differ is None:
            return
        found = [
            *self._differences(texts, item.differ),
            *((ranks, message) for message, ranks in most_first(failed)),
        ]
        if not found:
            self._barriers.pass_on(round)
            return
        group = self._core.default_group()
        shown = "; ".join(
            f"rank{'s' if len(ranks) > 1 else ''} {fold(ranks, group)}: {_cut(value)}"
            for ranks, value in found[:MAX_VALUES]
        )
        more = f"; {len(found) - MAX_VALUES} more" if len(found) > MAX_VALUES else ""
        self._barriers.stop(round, f"{item.compared}, {shown}{more}", found[0][0])
        body: Body = {"category": "important"}
        body["output"] = f"dap-mux: differ: {item.compared}: {shown}{more}\n"
        to_clients.broadcast(self._core, "output", body)

    def _failed(self, round: BarrierRound, answers: Answers) -> dict[RankId, str]:
        """Why there is no value of a rank that is still there."""
        silent = dict.fromkeys(answers.missing, "no answer")
        failed = {**answers.errors, **silent}
        return {id: message for id, message in failed.items() if id in round.here}

    def _differences(
        self, texts: dict[RankId, str], differ: Differ
    ) -> Iterator[tuple[Sequence[RankId], str]]:
        """The ranks and values of sets that are not the same, outliers first."""
        tolerance = Tolerance(relative=differ.tolerance)
        for ids in self._sets(texts, differ.dimensions):
            if len({texts[id] for id in ids}) > 1:
                groups = compare({id: texts[id] for id in ids}, tolerance).groups
                if len(groups) > 1:
                    yield from ((one.ranks, one.value) for one in reversed(groups))

    def _sets(self, ids: Iterable[RankId], dimensions: tuple[str, ...]) -> list[list[RankId]]:
        """The ranks to compare with each other: those that differ in these dimensions only."""
        if not dimensions:
            return [list(ids)]
        sets: dict[object, list[RankId]] = {}
        for id in ids:
            coords = coords_of(self._core, self._core.mains[id])
            rest = {name: at for name, at in coords.items() if name not in dimensions}
            sets.setdefault((id[0], *sorted(rest.items())), []).append(id)
        return list(sets.values())


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}…"
