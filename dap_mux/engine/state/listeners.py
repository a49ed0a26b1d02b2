"""Signals: one part of the engine tells others of something without knowing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec, TypeAlias

from dap_mux.engine.state.rank import Rank

P = ParamSpec("P")
RowsChanged: TypeAlias = Callable[[Sequence[Rank]], None]
"""Takes note of ranks whose row in `list` may have changed since the last call.

`Engine.receive` calls these once an input has been handled, so no rank is half changed.
"""


class Listeners(Generic[P]):
    """The callbacks of one signal. Each part adds its own when it is constructed."""

    def __init__(self) -> None:
        self._listeners: list[Callable[P, None]] = []

    def add(self, listener: Callable[P, None]) -> None:
        """Add a callback; callbacks are called in the order in which they were added."""
        self._listeners.append(listener)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all of them."""
        for listener in self._listeners:
            listener(*args, **kwargs)
