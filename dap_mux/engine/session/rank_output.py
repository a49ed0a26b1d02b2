"""Output of ranks: joined to lines, folded, and sent within a moment."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from dap_mux.engine.messages import to_clients
from dap_mux.engine.session.log_lines import Line, LogPlace, Outliers, place_of
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets.world import DebuggeeId, label

# Lines of several ranks in the order in which they will be shown; equal ones fold.

LINE_COST: Final = 128
"""What a line costs beside its text, in characters, so that empty ones are not free."""

RAY_MARKS: Final = (":actor_name:", ":task_name:", ":job_id:")
_RANK_COST: Final = 8


class LineQueue:
    """A rank's line folds only into one that stands behind all its own earlier lines."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.held = 0
        # of each foldable text, ascending
        self._places: dict[tuple[str, str, LogPlace | None], list[int]] = {}
        self._last: dict[DebuggeeId, int] = {}  # where each rank's latest line stands

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: Line) -> None:
        """Fold `line` (of one rank) into an equal one, or put it last.

        What Ray's workers print for Ray, not for a reader, is left out.
        """
        if line.text.startswith(RAY_MARKS) and line.rest is None:
            return
        place = self._equal(line) if line.folds else None
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
        places = self._places.get((line.category, line.text, line.place), ())
        index = bisect_right(places, self._last.get(line.ranks[0], -1))
        return places[index] if index < len(places) else None

    def _append(self, line: Line) -> None:
        place = len(self.lines)
        self.lines.append(line)
        rest = len(str(line.rest)) if line.rest else 0
        self.held += len(line.text) + rest + LINE_COST + _RANK_COST * len(line.ranks)
        if line.folds:
            key = (line.category, line.text, line.place)
            self._places.setdefault(key, []).append(place)
        for rank in line.ranks:
            self._last[rank] = place


# Many ranks' output as one readable stream: `[3] …`, equal lines folded to `[0-3] …`.
#
# pydevd sends `print("hello", 2)` as four events (measured), so pieces are joined to lines for each
# rank and category. Lines wait a little for their likes from other ranks. There is no clock in
# here: while `pending`, the engine calls `flush` after `tick` seconds, and at once when `urgent`. A
# flush returns what the flush before it has seen already, so that a line waits between half a
# window and a whole one.
#
# The order of a rank's lines is kept, whatever the others do. A piece without a newline has more
# time, for on a busy machine its rest comes late; then it leaves as it is. What its ranks print
# next continues it without a prefix, and anything else is kept off its line by a newline of our
# own.

# Lines to the bodies of `output` events: who said it in front, and no two ranks on one line.

Ranks: TypeAlias = "tuple[DebuggeeId, ...]"
Folded: TypeAlias = "tuple[Body, Ranks]"
Label: TypeAlias = "Callable[[Iterable[DebuggeeId]], str]"


class _BodyKey(NamedTuple):
    """Neighbours that go out as one body share this; `alone` keeps a line to itself.

    Also that of the last text shown, if it lacked a newline; without ranks, none can continue it.
    """

    ranks: Ranks
    category: str
    alone: int


class OutputBodies:
    """Remembers how the shown stream ended: clients join the texts of events as they come."""

    def __init__(self, label: Label) -> None:
        self._prefix = lru_cache(1024)(lambda ranks: f"[{label(ranks)}] ")
        self._unfinished: _BodyKey | None = None

    def close(self, rank: DebuggeeId) -> None:
        """The rank is gone: nothing continues a line that it left unfinished."""
        if self._unfinished is not None and rank in self._unfinished.ranks:
            self._unfinished = self._unfinished._replace(ranks=())

    def of(self, lines: Iterable[Line]) -> Iterator[Folded]:
        """Yield `(body, ranks)` in order; a newline of our own has no ranks."""
        self._prefix.cache_clear()  # a label may depend on who else is there
        for run, members in groupby(lines, _run):
            group = list(members)
            text = "".join(line.text for line in group)
            if group[0].plain:
                yield from self._plain(group[0], run)
            elif group[0].rest is not None:
                yield from self._finish()
                rest = {**group[0].rest, **({"outlier": True} if group[0].outlier else {})}
                yield _body(run.category, self._prefixed(text, run.ranks), rest), run.ranks
            else:
                yield from self._text(text, run, final=group[-1].final)

    def _plain(self, line: Line, run: _BodyKey) -> Iterator[Folded]:
        if self._unfinished is not None and self._unfinished.ranks != run.ranks:
            yield from self._finish()
        self._note(line.text, run)
        yield _body(run.category, line.text, line.rest or {}), run.ranks

    def _text(self, text: str, run: _BodyKey, *, final: bool) -> Iterator[Folded]:
        if self._unfinished is not None and self._unfinished[:2] == run[:2]:
            first, newline, more = text.partition("\n")
            shown = first + newline + self._prefixed(more, run.ranks)
        else:
            yield from self._finish()
            shown = self._prefixed(text, run.ranks)
        self._note(text, run._replace(ranks=()) if final else run)
        yield _body(run.category, shown, {}), run.ranks

    def _finish(self) -> Iterator[Folded]:
        if self._unfinished is not None:
            yield _body(self._unfinished.category, "\n", {}), ()
            self._unfinished = None

    def _note(self, text: str, run: _BodyKey) -> None:
        if text:
            self._unfinished = None if text.endswith("\n") else run

    def _prefixed(self, text: str, ranks: Ranks) -> str:
        if not text:
            return ""
        prefix = self._prefix(ranks)
        return prefix + text[:-1].replace("\n", "\n" + prefix) + text[-1]


def _run(line: Line) -> _BodyKey:
    alone = line.plain or line.final or line.rest is not None
    return _BodyKey(tuple(sorted(line.ranks)), line.category, id(line) if alone else 0)


def _body(category: str, text: str, rest: Body) -> Body:
    return {"category": category, "output": text, **rest} if category else {"output": text, **rest}


MAX_HELD: Final = 1024 * 1024
"""Characters; beyond them a flush is `urgent`."""

_LONG: Final = 64 * 1024  # a text to fold as one: not worth (or too many to be) single lines


class _Partial(Struct):
    """The pieces of a line whose newline has not come."""

    pieces: list[str] = field(default_factory=list)
    cost: int = 0
    waited: int = 0  # how many flushes have seen it


class OutputFolder:
    """Holds what ranks print until it is due.

    `plain`: one rank in the session, so everything is due at once and unchanged.
    `fold_window` and `patience`: s that a line waits for its likes, and a piece for its newline.
    `label` names ranks in prefixes.
    """

    def __init__(
        self, fold_window: float = 0.05, patience: float = 0.05, label: Label = label
    ) -> None:
        self.plain = False
        self.tick = fold_window / 2
        self._patience = round(patience / self.tick) - 1  # in flushes, as a line has one
        self._queue = LineQueue()
        self._waited = 0  # how many of the queue's lines the last flush has seen
        self._partials: dict[tuple[DebuggeeId, str], _Partial] = {}
        self._partial_cost = 0
        self._bodies = OutputBodies(label)
        self._outliers = Outliers()

    @property
    def pending(self) -> bool:
        """Something is held: `flush` wants to be called in `tick` seconds."""
        return bool(self._queue or self._partials)

    @property
    def urgent(self) -> bool:
        """`flush` wants to be called now."""
        held = self._queue.held + self._partial_cost
        return held > MAX_HELD or (self.plain and self.pending)

    def add(self, rank: DebuggeeId, category: str, text: str, body_rest: Body) -> None:
        """Take the body of an `output` event; `category` "" is an absent one.

        A body with other fields than output and category stays one body, in its rank's order.
        Fields that say nothing (null, 0, empty) do not count: debugpy's logpoints have them.
        """
        if self.plain or any(body_rest.values()):
            self._complete((rank, category))
            place = None if self.plain else place_of(body_rest)
            self._queue.add(Line([rank], category, text, body_rest, self.plain, place=place))
        elif text:
            self._join((rank, category), text)

    def close(self, rank: DebuggeeId) -> None:
        """The rank is gone: its unfinished lines will get no newline."""
        self._bodies.close(rank)
        for key in [key for key in self._partials if key[0] == rank]:
            self._complete(key, final=True)

    def flush(
        self, *, everything: bool = False, said_by: Collection[DebuggeeId] = ()
    ) -> list[Folded]:
        """Return the `output` bodies that are due, in order, each with its ranks.

        A newline of our own has no ranks. `everything`: at the end. `said_by`: every line, and all
        that these ranks have said; before their stop is told.
        """
        everything = everything or self.urgent
        if everything or said_by:
            for key in [key for key in self._partials if everything or key[0] in said_by]:
                self._complete(key)
            due = self._queue.take(len(self._queue))
        else:
            due = [*self._queue.take(self._waited), *self._overdue()]
        self._waited = len(self._queue)
        self._outliers.mark(due)
        return list(self._bodies.of(due))

    def _join(self, key: tuple[DebuggeeId, str], text: str) -> None:
        end = text.rfind("\n") + 1
        if end:
            start = text.find("\n") + 1
            self._hold(key, text[:start])
            self._complete(key)
            middle = text[start:end]
            for line in _lines(middle) if len(middle) <= _LONG else [middle]:
                self._queue.add(Line([key[0]], key[1], line))
        if end < len(text):
            self._hold(key, text[end:])

    def _hold(self, key: tuple[DebuggeeId, str], piece: str) -> None:
        partial = self._partials.setdefault(key, _Partial())
        partial.pieces.append(piece)
        cost = len(piece) + LINE_COST
        partial.cost += cost
        self._partial_cost += cost

    def _release(self, key: tuple[DebuggeeId, str]) -> str:
        partial = self._partials.pop(key, None)
        if partial is None:
            return ""
        self._partial_cost -= partial.cost
        return "".join(partial.pieces)

    def _complete(self, key: tuple[DebuggeeId, str], *, final: bool = False) -> None:
        if text := self._release(key):
            self._queue.add(Line([key[0]], key[1], text, final=final))

    def _overdue(self) -> list[Line]:
        """Pieces that have waited long enough; all of their rank's lines are due too."""
        overdue = LineQueue()
        late = [key for key, one in self._partials.items() if one.waited >= self._patience]
        for key in late:
            overdue.add(Line([key[0]], key[1], self._release(key)))
        for partial in self._partials.values():
            partial.waited += 1
        return overdue.lines


def _lines(text: str) -> list[str]:
    """Cut after each newline and nowhere else: `splitlines` knows ten more ends."""
    return [line + "\n" for line in text.split("\n")[:-1]]


# A line of a traceback with its place, which an editor shows as a link. debugpy gives none.

MAX_PLACES: Final = 64  # of one text: each is an event
_PLACE: Final = re.compile(
    r"""^(?:\[[^\]\n]{1,256}\]\ )?[\ |+-]*File\ "(?P<path>[^"<\n][^"\n]{0,1023})",
    \ line\ (?P<line>[0-9]{1,7})(?:,\ in\ [^\n]*)?\n""",
    re.MULTILINE | re.VERBOSE,
)


def with_places(body: Body, to_local: Callable[[str], str]) -> Iterator[Body]:
    """Yield a body in pieces: a traceback's lines have `source` and `line`, the rest none.

    `to_local`: from a path of the rank's to that of the session.
    """
    text, start = str(body["output"]), 0
    lines = [] if body.get("source") or 'File "' not in text else [*_PLACE.finditer(text)]
    for found in lines if len(lines) <= MAX_PLACES else []:
        if found.start() > start:
            yield {**body, "output": text[start : found.start()]}
        start = found.end()
        place: Body = {"source": {"path": to_local(found["path"])}, "line": int(found["line"])}
        yield {**body, "output": found[0], **place}
    if start < len(text) or not text:
        yield {**body, "output": text[start:]}


# What ranks print, on its way to the clients: held, folded, and sent when it is due.


class RankOutput:
    """The engine's part that sends the ranks' output; it keeps the folder's time."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._folder = OutputFolder(core.settings.settle, core.settings.line_patience, self._label)
        self._timer: int | None = None

    def _label(self, ranks: Iterable[DebuggeeId]) -> str:
        """Return the prefix of a line: ranks, with their group where there are several."""
        named = sorted(ranks)
        alone = self._core.several_groups and len({id[0] for id in named}) == 1
        text = label(named, self._core.default_group())
        return f"{named[0][0]}:{text}" if alone else text

    def add(self, rank: Rank, category: str, text: str, rest: Body) -> None:
        """A rank has printed this; `rest` are the other fields of the event's body."""
        self._folder.plain = self._core.single
        self._folder.add(rank.id, category, text, rest)
        self._arrange_flush()

    def _arrange_flush(self) -> None:
        if self._folder.urgent:
            self.flush()
        elif self._folder.pending and self._timer is None:
            self._timer = self._core.after(self._folder.tick, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.flush()

    def flush(self, *, everything: bool = False, said_by: Collection[DebuggeeId] = ()) -> None:
        """Send what is due (`OutputFolder.flush`)."""
        for body, ranks in self._folder.flush(everything=everything, said_by=said_by):
            for piece in with_places(body, self._path_of(ranks)):
                to_clients.broadcast_output(self._core, piece)
        self._arrange_flush()

    def _path_of(self, ranks: Ranks) -> Callable[[str], str]:
        """Return what finds the session's path for a rank's; equal lines have the first rank's."""
        rank = self._core.ranks.get(ranks[0]) if ranks else None
        return lambda path: (paths_of(self._core, rank).to_local(path) if rank else None) or path

    def close(self, rank: Rank) -> None:
        """The rank is gone: its unfinished line will not be finished."""
        self._folder.close(rank.id)
        self.flush()
