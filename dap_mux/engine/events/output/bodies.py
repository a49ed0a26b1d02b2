"""Lines to the bodies of `output` events: who said it in front, and no two ranks on one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, TypeAlias

from dap_mux.engine.events.output.lines import Line
from dap_mux.engine.state.bodies import Body
from dap_mux.rank_sets.debuggees import DebuggeeId

Ranks: TypeAlias = "tuple[DebuggeeId, ...]"
Folded: TypeAlias = "tuple[Body, Ranks]"
Label: TypeAlias = "Callable[[Iterable[DebuggeeId]], str]"


class _Unfinished(NamedTuple):
    """The last text shown, if it lacked a newline; without ranks, none can continue it."""

    ranks: Ranks
    category: str


class _BodyKey(NamedTuple):
    """Neighbours that go out as one body share this; `alone` keeps a line to itself."""

    ranks: Ranks
    category: str
    alone: int


class OutputBodies:
    """Remembers how the shown stream ended: clients join the texts of events as they come."""

    def __init__(self, label: Label) -> None:
        self._prefix = lru_cache(1024)(lambda ranks: f"[{label(ranks)}] ")
        self._unfinished: _Unfinished | None = None

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
                yield _body(run.category, self._prefixed(text, run.ranks), group[0].rest), run.ranks
            else:
                yield from self._text(text, run, final=group[-1].final)

    def _plain(self, line: Line, run: _BodyKey) -> Iterator[Folded]:
        if self._unfinished is not None and self._unfinished.ranks != run.ranks:
            yield from self._finish()
        self._note(line.text, run)
        yield _body(run.category, line.text, line.rest or {}), run.ranks

    def _text(self, text: str, run: _BodyKey, *, final: bool) -> Iterator[Folded]:
        if self._unfinished == run[:2]:
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
            self._unfinished = None if text.endswith("\n") else _Unfinished(run.ranks, run.category)

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
