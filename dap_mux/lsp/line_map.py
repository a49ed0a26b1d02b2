"""Where the lines of a text are after it was edited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

_LINE_END: Final = re.compile("\r\n|\n|\r")  # as Python and LSP count lines; splitlines has more
_MAX_COMPARED: Final = 400  # pairs of lines in one changed place
_SIMILAR: Final = 0.6


class LineMap:
    """The lines of one text in another, both from 1; a line that is gone is nowhere."""

    def __init__(self, before: str, now: str) -> None:
        self._lines = _positions(_LINE_END.split(before), _LINE_END.split(now))

    def now(self, line: int) -> int | None:
        """Return the number that a line has now."""
        if not 1 <= line <= len(self._lines):
            return None
        found = self._lines[line - 1]
        return None if found is None else found + 1


@lru_cache(maxsize=16)
def line_map(before: str, now: str) -> LineMap | None:
    """Return where the lines of a text are now; None if it has not changed."""
    return None if before == now else LineMap(before, now)


def _positions(before: Sequence[str], now: Sequence[str]) -> list[int | None]:
    """Return the index in `now` of each line; edits are mostly in one place, so compare less."""
    least = min(len(before), len(now))
    head = next((i for i in range(least) if before[i] != now[i]), least)
    tail = next((i for i in range(least - head) if before[-1 - i] != now[-1 - i]), least - head)
    moved = len(now) - len(before)
    middle = _changed(before[head : len(before) - tail], now[head : len(now) - tail])
    found: list[int | None] = list(range(head))
    found += [None if index is None else index + head for index in middle]
    return [*found, *(index + moved for index in range(len(before) - tail, len(before)))]


def _changed(before: Sequence[str], now: Sequence[str]) -> list[int | None]:
    found: list[int | None] = [None] * len(before)
    for kind, i, last_i, j, last_j in SequenceMatcher(None, before, now).get_opcodes():
        if kind == "equal" or (kind == "replace" and last_i - i == last_j - j):
            found[i:last_i] = range(j, last_j)
        elif kind == "replace" and (last_i - i) * (last_j - j) <= _MAX_COMPARED:
            for one, other in _similar(before[i:last_i], now[j:last_j]):
                found[i + one] = j + other
    return found


def _similar(before: Sequence[str], now: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of lines that are much the same, in their order."""
    first = 0
    for index, line in enumerate(before):
        ratios = [
            SequenceMatcher(None, line.strip(), other.strip()).ratio() for other in now[first:]
        ]
        best = max(ratios, default=0.0)
        if best >= _SIMILAR:
            chosen = first + ratios.index(best)
            yield index, chosen
            first = chosen + 1
