"""Lines of output; of logpoints, which differ from what most ranks log at their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from dap_mux.engine.state.handles import Recent
from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.compare import compare
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId, rank_of

MAX_PLACES: Final = 64
MAX_TEXTS: Final = 64  # of one place: a rank may be so many lines ahead of another
MAX_NUMBERS: Final = 16  # of one line
MAX_CHARS: Final = 1024
_NUMBER: Final = re.compile(
    r"(?<![\w.])-?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|nan|inf)(?![\w.])"
)


_MORE: Final = re.compile(r" +\([\d,]+ more like it in [^)\n]+\)$", re.MULTILINE)
"""Behind the newest of lines that a rank has left out."""


class LogPlace(NamedTuple):
    """A line of a source file."""

    path: str
    line: int


class Line(Struct):
    """Text with its newline, or a piece that has none yet; several lines if they came as one."""

    ranks: list[DebuggeeId]
    category: str
    text: str
    rest: Body | None = None  # other fields of the body: such a line neither folds nor merges
    plain: bool = False  # shown as it came, without a prefix
    final: bool = False  # its rank is gone: nothing continues it
    place: LogPlace | None = None  # of a logpoint: such a line folds, and does not merge
    outlier: bool = False

    @property
    def folds(self) -> bool:
        """Whether an equal line of another rank is this line."""
        return not self.final and not self.plain and (self.rest is None or self.place is not None)


def place_of(rest: Mapping[str, Any]) -> LogPlace | None:
    """Return the place in the other fields of an `output` event; None where there is more."""
    match {name: value for name, value in rest.items() if value}:
        case {"source": {"path": str(path)}, "line": int(line), **more} if not more:
            return LogPlace(path, line)
        case _:
            return None


class _Said(NamedTuple):
    """A text: its numbers, and who has said it."""

    numbers: tuple[str, ...]
    ranks: set[DebuggeeId]


# Ranks are never quite in step, and a line of the step before must not be taken for another value.
# So a text counts as different only where most ranks have said another one now, or before with the
# same numbers (of the same step), and these ranks have not. Numbers are compared as *Compare* does,
# where most of them differ.
class Outliers:
    """Remembers which ranks have logged what at each place."""

    def __init__(self) -> None:
        self._places: Recent[LogPlace, Recent[int, _Said]] = Recent(MAX_PLACES)

    def mark(self, lines: Iterable[Line]) -> None:
        """Mark the lines of outliers among lines that are sent in the same moment."""
        placed = grouped((line.place, line) for line in lines if line.place is not None)
        for place, group in placed.items():
            said = self._places.get(place) or Recent(MAX_TEXTS)
            self._places[place] = said
            texts = [_MORE.sub("", line.text) for line in group]
            for line, text in zip(group, texts, strict=True):
                known = said.get(hash(text)) or _Said(_numbers(text), set())
                said[hash(text)] = known._replace(ranks=known.ranks.union(line.ranks))
            _mark(group, texts, said)


def _mark(group: list[Line], texts: list[str], said: Mapping[int, _Said]) -> None:
    heard = set().union(*(each.ranks for each in said.values()))
    now = [said[hash(text)] for text in texts]
    common = [each for each in said.values() if 2 * len(each.ranks) > len(heard)]
    # A line that stands for others is steps ahead of what other ranks say now.
    alone = [line for line, text in zip(group, texts, strict=True) if text == line.text]
    far = _far({rank_of(rank): line.text for line in alone for rank in line.ranks})
    for line, this in zip(group, now, strict=True):
        usual = [one.ranks for one in common if one in now or this.numbers == one.numbers != ()]
        other = this not in common and any(one.isdisjoint(line.ranks) for one in usual)
        line.outlier = other or rank_of(line.ranks[0]) in far


def _far(texts: Mapping[RankId, str]) -> set[RankId]:
    """Return the ranks of which a number is far from those of the others in the same words.

    Ranks that are steps apart are not compared: whole numbers, as a step's, have to be the same.
    """
    alike: dict[str, dict[RankId, list[str]]] = {}
    for rank, text in texts.items():
        alike.setdefault(_NUMBER.sub("#", text[:MAX_CHARS]), {})[rank] = [*_numbers(text)]
    found: set[RankId] = set()
    for same in alike.values():
        counts = [
            at for at, column in enumerate(zip(*same.values(), strict=True)) if _whole(column)
        ]
        in_step: dict[tuple[str, ...], dict[RankId, list[str]]] = {}
        for rank, numbers in same.items():
            in_step.setdefault(tuple(numbers[at] for at in counts), {})[rank] = numbers
        for some in in_step.values():
            for column in zip(*some.values(), strict=True):
                if 2 * len({*column}) > len(column) > 1:
                    found |= compare(dict(zip(some, column, strict=True))).outliers
    return found


def _numbers(text: str) -> tuple[str, ...]:
    return tuple(_NUMBER.findall(text[:MAX_CHARS])[:MAX_NUMBERS])


def _whole(column: Sequence[str]) -> bool:
    """Whether most numbers are whole: one of many may be a large value."""
    return 2 * sum(one.removeprefix("-").isdecimal() for one in column) > len(column)
