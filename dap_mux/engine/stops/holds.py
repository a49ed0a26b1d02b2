"""Holds ranks in the condition of a differ breakpoint, and lets them go; see `Barriers`."""

from __future__ import annotations

from dap_mux.engine.breakpoints.comparing import decide
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.stop import AtBarrier, Stop


def run_on(core: SessionState, rank: Rank, at: AtBarrier) -> None:
    """Let a rank go that waits in a condition; nothing to do for one that stands."""
    if at.hold and at.in_condition:
        decide(core, rank, at.hold.number, stops=False)


def stop_there(core: SessionState, rank: Rank) -> None:
    """Let it stop at the line instead; nothing to do for one that stands."""
    at = rank.at_barrier
    if at and at.hold and at.in_condition:
        at.hold.stops = True
        decide(core, rank, at.hold.number, stops=True)


def pause(core: SessionState, rank: Rank) -> bool:
    """Let it stop and be shown to clients, though it still waits; False where it stands already."""
    at = rank.at_barrier
    if at is None or at.hold is None or at.stop is not None:
        return False
    at.hold.shown = True
    stop_there(core, rank)
    return True


def ends_in(breakpoints: Breakpoints, rank: Rank, stop: Stop) -> bool:
    """Whether this is the stop of a rank that was told to stop there; another thread may stop."""
    at = rank.at_barrier
    if at is None or at.stop or not (at.hold and at.hold.stops):
        return False
    hits = stop.details.get("hitBreakpointIds")
    known = breakpoints.hit(rank, hits) if hits else []
    if known and not any(item.barrier for item in known):
        return False
    at.stop = stop
    return True
