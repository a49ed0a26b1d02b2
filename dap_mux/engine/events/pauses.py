"""Reports when the debugger holds ranks stopped, because a cluster may give up on silent ones."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.engine import outputs
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.rank_sets.debuggees import DebuggeeId


class Pauses:
    """Counts the ranks that are stopped."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._stopped: set[DebuggeeId] = set()

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Report the first rank that stops, and the last that continues."""
        before = bool(self._stopped)
        for rank in ranks:
            if rank.stopped:
                self._stopped.add(rank.id)
            else:
                self._stopped.discard(rank.id)
        if bool(self._stopped) != before:
            self._core.out.append(outputs.Paused(not before))
