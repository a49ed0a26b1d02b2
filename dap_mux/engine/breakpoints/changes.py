"""`breakpoint` events: where ranks are many, what changes within a moment is told together.

A client sees one breakpoint, merged from its states in all ranks. Merging again at each answer
would make every one of a thousand ranks look at all the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.state.session import SessionState

MANY_RANKS: Final = 64  # above this many
COALESCE_WINDOW_S: Final = 0.05


class Changes:
    """Breakpoints whose state has changed in some rank; `tell` says so to their clients."""

    def __init__(self, core: SessionState, tell: Callable[[Breakpoint], None]) -> None:
        self._core = core
        self._tell = tell
        self._changed: dict[Breakpoint, None] = {}
        self._timer: int | None = None

    def note(self, item: Breakpoint) -> None:
        """Tell it at once where ranks are few, else with all that changes within a moment."""
        if len(self._core.mains) <= MANY_RANKS:
            self._tell(item)
            return
        self._changed[item] = None
        if self._timer is None:
            self._timer = self._core.after(COALESCE_WINDOW_S, self._window_over)

    def _window_over(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, {}
        for item in changed:
            self._tell(item)
