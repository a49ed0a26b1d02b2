"""Differ breakpoints: the ranks of a complete barrier run on, unless their values differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dap_mux.engine.barriers.barriers import Barriers
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import BarrierRound, Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import coords_of
from dap_mux.insight.compare import Tolerance, compare
from dap_mux.insight.fold import most_first
from dap_mux.rank_sets import RankId, fold
from dap_mux.rank_sets.world import Differ

MAX_CHARS: Final = 60  # of a value that is shown
MAX_VALUES: Final = 6


class DifferBreakpoints:
    """The engine's part that decides whether ranks have stopped at a differ breakpoint."""

    def __init__(self, core: SessionState, barriers: Barriers) -> None:
        self._core = core
        self._barriers = barriers

    def decide(self, round: BarrierRound, item: Breakpoint, ranks: list[Rank]) -> None:
        """All ranks of a round are there: compare what they have reported."""
        said = {rank.rank_id: rank.at_barrier for rank in ranks if rank.at_barrier}
        failed = {id: at.problem for id, at in said.items() if at.problem}
        texts = {id: at.value for id, at in said.items() if id not in failed}
        if not failed and len(set(texts.values())) == 1:
            self._barriers.pass_on(round)
        else:
            self._compare(round, item, texts, failed)

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
