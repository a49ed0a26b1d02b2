"""How one part of the engine tells others of something without knowing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec, Protocol

from dap_mux.engine.state.rank import Rank

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Those that are told of one thing. Each adds itself when it is constructed."""

    def __init__(self) -> None:
        self._listeners: list[Callable[P, None]] = []

    def add(self, listener: Callable[P, None]) -> None:
        """Tell this one, too, after those that came before it."""
        self._listeners.append(listener)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener(*args, **kwargs)


class MoveListener(Protocol):
    """A part that is told whenever a rank moves."""

    def moved(self, rank: Rank) -> None:
        """What `list` shows of this rank has changed: its phase, its stop, its step."""


class RankMoves:
    """Tells of ranks' moves, but not of hidden children: to the session there are none."""

    def __init__(self, listeners: Sequence[MoveListener]) -> None:
        self._listeners = listeners

    def moved(self, rank: Rank) -> None:
        """What `list` shows of this rank has changed."""
        if not rank.hidden:
            for listener in self._listeners:
                listener.moved(rank)
