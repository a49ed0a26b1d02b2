"""Lines of several ranks in the order in which they will be shown; equal ones fold."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from msgspec import Struct

from dap_mux.engine.state.bodies import Body
from dap_mux.rank_sets.debuggees import DebuggeeId

LINE_COST: Final = 128
"""What a line costs beside its text, in characters, so that empty ones are not free."""

RAY_MARKS: Final = (":actor_name:", ":task_name:", ":job_id:")
_RANK_COST: Final = 8


class Line(Struct):
    """Text with its newline, or a piece that has none yet; several lines if they came as one."""

    ranks: list[DebuggeeId]
    category: str
    text: str
    rest: Body | None = None  # other fields of the body: such a line neither folds nor merges
    plain: bool = False  # shown as it came, without a prefix
    final: bool = False  # its rank is gone: nothing continues it
    size: int = 0  # of `rest`, about


class LineQueue:
    """A rank's line folds only into one that stands behind all its own earlier lines."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.held = 0
        self._places: dict[tuple[str, str], list[int]] = {}  # of each foldable text, ascending
        self._last: dict[DebuggeeId, int] = {}  # where each rank's latest line stands

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: Line) -> None:
        """Fold `line` (of one rank) into an equal one, or put it last.

        What Ray's workers print for Ray, not for a reader, is left out.
        """
        if line.text.startswith(RAY_MARKS) and line.rest is None:
            return
        place = self._equal(line) if line.rest is None and not line.final else None
        if place is None:
            self._append(line)
        else:
            self.lines[place].ranks += line.ranks
            self._last[line.ranks[0]] = place
            self.held += _RANK_COST

    def take(self, count: int) -> list[Line]:
        """Remove and return the first `count` lines."""
        taken, kept = self.lines[:count], self.lines[count:]
        self.lines, self.held = [], 0
        self._places.clear()
        self._last.clear()
        for line in kept:
            self._append(line)
        return taken

    def _equal(self, line: Line) -> int | None:
        places = self._places.get((line.category, line.text), ())
        index = bisect_right(places, self._last.get(line.ranks[0], -1))
        return places[index] if index < len(places) else None

    def _append(self, line: Line) -> None:
        place = len(self.lines)
        self.lines.append(line)
        self.held += len(line.text) + line.size + LINE_COST + _RANK_COST * len(line.ranks)
        if line.rest is None and not line.final:
            self._places.setdefault((line.category, line.text), []).append(place)
        for rank in line.ranks:
            self._last[rank] = place
