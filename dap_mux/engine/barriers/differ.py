"""Report a barrier to clients: ranks whose values differ once it is complete, and missing ranks.

At a differ breakpoint the ranks run on, unless their values differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from dap_mux.engine.barriers.barriers import Barriers
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import BarrierRound, Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import base_name, coords_of
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.compare import compare, most_first
from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.protocol.types import Tolerance
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.pure.rank_sets.world import DebuggeeId, Differ, rank_of
from dap_mux.pure.remote import Stacks, ask_stacks, stacks_of

MAX_CHARS: Final = 60  # of a value that is shown
MAX_VALUES: Final = 6


def compare_values(
    core: SessionState, barriers: Barriers, round: BarrierRound, item: Breakpoint, ranks: list[Rank]
) -> None:
    """All ranks of a round are there: do the values differ that they have reported?"""
    said = {rank.rank_id: rank.at_barrier for rank in ranks if rank.at_barrier}
    failed = {id: at.problem for id, at in said.items() if at.problem}
    texts = {id: at.value for id, at in said.items() if id not in failed}
    assert item.differ is not None
    found = [
        *_differences(core, texts, item.differ),
        *((ranks, message) for message, ranks in most_first(failed)),
    ]
    if not found:
        barriers.pass_on(round)
        return
    group = core.default_group()
    shown = "; ".join(
        f"rank{'s' if len(ranks) > 1 else ''} {fold(ranks, group)}: {_cut(value)}"
        for ranks, value in found[:MAX_VALUES]
    )
    more = f"; {len(found) - MAX_VALUES} more" if len(found) > MAX_VALUES else ""
    barriers.stop(round, f"{item.compared}, {shown}{more}", found[0][0])
    to_clients.say(core, f"differ: {item.compared}: {shown}{more}", "important")


def _differences(
    core: SessionState, texts: dict[RankId, str], differ: Differ
) -> Iterator[tuple[Sequence[RankId], str]]:
    """The ranks and values of sets that are not the same, outliers first."""
    if len(set(texts.values())) == 1:
        return
    tolerance = Tolerance(relative=differ.tolerance)
    for ids in _sets(core, texts, differ.dimensions):
        if len({texts[id] for id in ids}) > 1:
            groups = compare({id: texts[id] for id in ids}, tolerance).groups
            if len(groups) > 1:
                yield from ((one.ranks, one.value) for one in reversed(groups))


def _sets(
    core: SessionState, ids: Iterable[RankId], dimensions: tuple[str, ...]
) -> list[list[RankId]]:
    """The ranks to compare with each other: those that differ in these dimensions only."""
    if not dimensions:
        return [list(ids)]
    sets: dict[object, list[RankId]] = {}
    for id in ids:
        coords = coords_of(core, core.mains[id])
        rest = {name: at for name, at in coords.items() if name not in dimensions}
        sets.setdefault((id[0], *sorted(rest.items())), []).append(id)
    return list(sets.values())


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}…"


# Says who is missing at a barrier after a time, and where they are.

MAIN: Final = "MainThread"
Told: TypeAlias = "dict[DebuggeeId, Result[Stacks]]"


def tell_missing(core: SessionState, round: BarrierRound, item: Breakpoint) -> None:
    """Ask those that run where they are, and tell it all."""
    missing = [core.ranks[id] for id in sorted(round.awaited) if id in core.ranks]
    runs = [rank for rank in missing if rank.phase.live and rank.stop is None]
    expression = ask_stacks(core.injected["stacks"], every_thread=False)
    then = partial(_tell, core, round, item)
    gather_results(core, runs, lambda rank: expression, Stacks, then)


def _tell(core: SessionState, round: BarrierRound, item: Breakpoint, told: Told) -> None:
    if not (round.here and round.awaited):
        return
    missing: dict[RankId, str] = {}
    for id in round.awaited & core.ranks.keys():
        missing[rank_of(id)] = _place(core, core.ranks[id], told)
    group, seconds = core.default_group(), core.settings.barrier_timeout
    where = "; ".join(
        f"rank{'s' if len(ranks) > 1 else ''} {fold(ranks, group)} {place}"
        for place, ranks in most_first(missing)
    )
    place = item.body.get("name") or f"line {item.body.get('line')}"
    waiting = fold([rank_of(id) for id in round.here], group)
    text = (
        f"{round} at {place} for {seconds:g} s; missing: {where}; "
        f"`cast {waiting} c` lets those that wait run on"
    )
    to_clients.say(core, text, "important")


def _place(core: SessionState, rank: Rank, told: Told) -> str:
    if not rank.phase.live:
        return rank.absence
    stop = rank.stop
    if stop is not None:
        frame = (stop.frames or (None,))[0]
        return f"stopped at {_spot(frame.path, frame.line, frame.name)}" if frame else "stopped"
    stacks, reply = told.get(rank.id, (None, None))
    frame_now = _innermost(core, rank, stacks) if stacks else None
    if frame_now is None:
        return f"does not answer: {reply.problem}" if reply and reply.problem else "running"
    return f"running at {_spot(frame_now.path, frame_now.line, frame_now.function)}"


def _innermost(core: SessionState, rank: Rank, told: Stacks) -> Frame | None:
    """The innermost frame of the program itself, else of a library."""
    try:
        stacks = dict(stacks_of(told, paths_of(core, rank)))
    except PeerFault:
        return None
    stack: Stack = stacks.get(MAIN) or next(iter(stacks.values()), ())
    own = [frame for frame in stack if not frame.library] or stack
    return own[-1] if own else None


def _spot(path: str, line: int, function: str) -> str:
    return f"{base_name(path)}:{line} in {function}"
