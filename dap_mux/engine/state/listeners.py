"""Signals: one part of the engine tells others of something without knowing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec, Protocol

from dap_mux.engine.state.rank import Rank

P = ParamSpec("P")


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


class MoveListener(Protocol):
    """A part that is told whenever a rank's visible state changes."""

    def moved(self, rank: Rank) -> None:
        """Called when what `list` shows of this rank has changed: phase, stop or step."""


class RankMoves:
    """Tells the listeners of changes, except for hidden children, which have no row."""

    def __init__(self, listeners: Sequence[MoveListener]) -> None:
        self._listeners = listeners

    def moved(self, rank: Rank) -> None:
        """Tell the listeners, unless the rank is hidden."""
        if not rank.hidden:
            for listener in self._listeners:
                listener.moved(rank)
