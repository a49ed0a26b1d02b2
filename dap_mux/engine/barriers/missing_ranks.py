"""Says who is missing at a barrier after a time, and where they are."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias

from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.gather_results import Result, gather_results
from dap_mux.engine.remote.stack_probe import Stacks, ask, stacks_of
from dap_mux.engine.source_files.path_mappings import paths_of
from dap_mux.engine.state.rank import BarrierRound, Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.errors import PeerFault
from dap_mux.insight.fold import most_first
from dap_mux.insight.stack_tree import Frame, Stack
from dap_mux.rank_sets import RankId, fold
from dap_mux.rank_sets.debuggees import DebuggeeId, rank_of

MAIN: Final = "MainThread"
Told: TypeAlias = "dict[DebuggeeId, Result[Stacks]]"


class MissingRanks:
    """The engine's part that tells users why a barrier is not complete."""

    def __init__(self, core: SessionState) -> None:
        self._core = core

    def tell(self, round: BarrierRound, item: Breakpoint) -> None:
        """Ask those that run where they are, and tell it all."""
        missing = [self._core.ranks[id] for id in sorted(round.awaited) if id in self._core.ranks]
        runs = [rank for rank in missing if rank.phase.live and rank.stop is None]
        expression = ask(self._core.injected["stacks"], every_thread=False)
        then = partial(self._tell, round, item)
        gather_results(self._core, runs, lambda rank: expression, Stacks, then)

    def _tell(self, round: BarrierRound, item: Breakpoint, told: Told) -> None:
        if not (round.here and round.awaited):
            return
        missing: dict[RankId, str] = {}
        for id in round.awaited & self._core.ranks.keys():
            missing[rank_of(id)] = self._place(self._core.ranks[id], told)
        group, seconds = self._core.default_group(), self._core.settings.barrier_timeout
        where = "; ".join(
            f"rank{'s' if len(ranks) > 1 else ''} {fold(ranks, group)} {place}"
            for place, ranks in most_first(missing)
        )
        place = item.body.get("name") or f"line {item.body.get('line')}"
        waiting = fold([rank_of(id) for id in round.here], group)
        text = (
            f"dap-mux: {round} at {place} for {seconds:g} s; missing: {where}; "
            f"`cast {waiting} c` lets those that wait run on\n"
        )
        to_clients.broadcast(self._core, "output", {"category": "important", "output": text})

    def _place(self, rank: Rank, told: Told) -> str:
        if not rank.phase.live:
            return rank.absence
        stop = rank.stop
        if stop is not None:
            frame = (stop.frames or (None,))[0]
            return f"stopped at {_spot(frame.path, frame.line, frame.name)}" if frame else "stopped"
        stacks, reply = told.get(rank.id, (None, None))
        frame_now = self._innermost(rank, stacks) if stacks else None
        if frame_now is None:
            return f"does not answer: {reply.problem}" if reply and reply.problem else "running"
        return f"running at {_spot(frame_now.path, frame_now.line, frame_now.function)}"

    def _innermost(self, rank: Rank, told: Stacks) -> Frame | None:
        """The innermost frame of the program itself, else of a library."""
        try:
            stacks = dict(stacks_of(told, paths_of(self._core, rank)))
        except PeerFault:
            return None
        stack: Stack = stacks.get(MAIN) or next(iter(stacks.values()), ())
        own = [frame for frame in stack if not frame.library] or stack
        return own[-1] if own else None


def _spot(path: str, line: int, function: str) -> str:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}:{line} in {function}"
