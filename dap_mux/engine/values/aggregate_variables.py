"""Values of several ranks as one tree: a `variablesReference` of our own for its top.

A child stands for ranks that say the same; below it are variables of one of those ranks, by that
rank's own handles. A tree is of one stop of its ranks: it dies when any of them runs on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.errors import StaleHandle

MAX_TREES: Final = 1024  # trees that are kept: of running ranks none ever dies


class _Tree(NamedTuple):
    children: tuple[Body, ...]
    stops: tuple[tuple[Rank, Stop], ...]

    def gone(self) -> Rank | None:
        """Return a rank that has run on since."""
        return next((rank for rank, stop in self.stops if rank.stop is not stop), None)


class AggregateVariables:
    """The engine's part that owns the tops of trees."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._trees: OrderedDict[int, _Tree] = OrderedDict()

    def add(self, children: Iterable[Body], ranks: Iterable[Rank]) -> int:
        """Return the reference of a new tree over these ranks, 0 where it has no children."""
        kept = tuple(children)
        if not kept:
            return 0
        for reference in [number for number, tree in self._trees.items() if tree.gone()]:
            del self._trees[reference]
        while len(self._trees) >= MAX_TREES:
            self._trees.popitem(last=False)
        reference = self._core.handles.reserve()
        stops = tuple((rank, rank.stop) for rank in ranks if rank.stop)
        self._trees[reference] = _Tree(kept, stops)
        return reference

    def owns(self, reference: int) -> bool:
        """Whether this is a tree's top, alive or dead since a moment ago."""
        return reference in self._trees

    def children(self, reference: int) -> list[Body]:
        """Return the `Variable`s below a top. Raises `StaleHandle` once a rank has run on."""
        tree = self._trees[reference]
        gone = tree.gone()
        if gone:
            raise StaleHandle(
                f"variables {reference} is stale: rank {gone.number} has run on since"
            )
        return list(tree.children)
