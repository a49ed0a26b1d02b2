"""Changes of a rank's phase. All go through here; the table of them is `phases.TRANSITIONS`."""

from __future__ import annotations

from typing import Protocol

from dap_mux.engine.ranks.process_watch import forget_lost
from dap_mux.engine.state.phases import Signal, step
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState


class Watcher(Protocol):
    """The rest of the engine, which is told what becomes of ranks."""

    def configuring(self, rank: Rank) -> None:
        """The rank takes breakpoints now, and does not run on before `start`."""

    def live(self, rank: Rank) -> None:
        """The rank is attached."""

    def lost(self, rank: Rank, was_live: bool) -> None:
        """The rank's connection is gone; `rank.phase` says whether its process is too."""


class Transitions:
    """Changes phases, and ends what belongs to the phase before."""

    def __init__(self, core: SessionState) -> None:
        self._core = core

    def to(self, rank: Rank, signal: Signal, reason: str = "") -> None:
        """Take the step that the table has for this signal."""
        before, after = rank.phase, step(rank.phase, signal)
        rank.phase = after
        if before.live or after.live:
            self._core.phase_changed(rank)
        if reason or not after.trying:
            self._core.set_reason(rank, reason)  # while it is tried again, `list` says why that is
        if not after.trying:
            forget_lost(self._core, rank)
        if rank.timer is not None:
            self._core.cancel(rank.timer)
            rank.timer = None
        # `list` shows no step of a handshake, and thousands of ranks take them at once.
        if not (before.handshake and after.handshake):
            self._core.touch(rank)
