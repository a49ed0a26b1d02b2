"""The words of pdb for breakpoints: each acts on the named ranks' share of this client's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from dap_mux.engine.breakpoints.edits import Drawer, belongs, where
from dap_mux.engine.breakpoints.merge import CONDITION, HIT, Temporary, Wanted
from dap_mux.engine.breakpoints.store import FUNCTIONS, Place
from dap_mux.engine.breakpoints.sync import EXPECTED
from dap_mux.engine.commands.pdb.command import Order, Word
from dap_mux.engine.commands.pdb.locations import selected
from dap_mux.engine.evaluate.fan_out import Answer, Gathering
from dap_mux.engine.python_syntax import LONGEST, syntax_problem
from dap_mux.engine.state.model import Body, Rank
from dap_mux.errors import UsageError
from dap_mux.rank_sets import RankId

OBSERVER: Final = (
    "a breakpoint lasts as long as the client that sets it: use the console or an editor"
)
NOT_BOTH: Final = (
    "debugpy stops where a condition or a count holds, not both: clear the other first"
)
UNKNOWN_FILE: Final = "no file {!r} is known here yet: give its whole path"
WAITING: Final = " (once it is attached)"
_FILE_LINE: Final = re.compile(r"(?P<file>.+):\s*(?P<line>\d+)")
_FUNCTION: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class BreakpointWords:
    """Words that change the book of breakpoints."""

    def __init__(self, drawer: Drawer) -> None:
        self._drawer = drawer
        self.words: Mapping[str, Word] = {
            "b": partial(self._break, ""),
            "tbreak": partial(self._break, "hit"),
            "cl": self._clear,
            "condition": self._condition,
            "ignore": self._ignore,
            "enable": partial(self._enable, True),
            "disable": partial(self._enable, False),
        }

    # Setting

    def _break(self, kind: Temporary, order: Order) -> None:
        if not order.argument:
            self._list(order)
            return
        _check_controller(order)
        location, _, condition = (part.strip() for part in order.argument.partition(","))
        _check_location(location)
        _check_python(condition)
        gathering = order.gathering()
        places: dict[tuple[Place, int], list[Rank]] = {}
        for rank in order.ranks:
            place = self._place(order, rank, location)
            if isinstance(place, str):
                gathering.fail(rank.rank_id, place)
            else:
                places.setdefault(place, []).append(rank)
        for (place, line), ranks in places.items():
            body: Body = {"name": location} if place == FUNCTIONS else {"line": line}
            body |= {CONDITION: condition} if condition else {}
            item = self._drawer.make(order.client.id, place, body, ranks, kind)
            self._apply(order, gathering, place, {item: ranks}, self._drawer.made)

    def _place(self, order: Order, rank: Rank, location: str) -> tuple[Place, int] | str:
        """Return file and line (a function: `FUNCTIONS`, 0), or why there is none."""
        if location.isdecimal():
            frame = selected(rank)
            if frame is None:
                return f"is {rank.state}: a line without a file needs a stopped rank"
            return frame.path, int(location)
        match = _FILE_LINE.fullmatch(location)
        if match is None:
            return FUNCTIONS, 0
        file = match["file"].strip()
        path = self._path(order, rank, file)
        return (path, int(match["line"])) if path else UNKNOWN_FILE.format(file)

    def _path(self, order: Order, rank: Rank, file: str) -> Place:
        """Return what a file's name means in this rank: of its stack, or known at all; else ''."""
        sent = order.client.edge.path(file) if order.client.edge else file
        if _is_absolute(sent):
            return sent
        frames = [frame.path for frame in (rank.stop.frames or () if rank.stop else ())]
        ranks = order.core.sorted_ranks()
        others = [f.path for r in ranks if r.stop for f in r.stop.frames or ()]
        book = [place for place, _ in self._drawer.items()]
        known = [path for path in (*frames, *book, *others) if _ends_with(path, sent)]
        if known:
            return known[0]
        if frames:
            head = re.split(r"[\\/][^\\/]*\Z", frames[0])[0]
            return f"{head}/{sent}"
        return ""

    def _apply(
        self,
        order: Order,
        gathering: Gathering,
        place: Place,
        items: Mapping[Wanted, list[Rank]],
        told: Callable[[Place, Wanted], None],
    ) -> None:
        """Send a place to the ranks, then answer with what they made of the new breakpoint."""

        def done() -> None:
            for item, ranks in items.items():
                told(place, item)
                for rank in ranks:
                    _answer_new(gathering, place, item, rank)
            _end_with(gathering, ranks_of(items))

        self._drawer.send(place, ranks_of(items), done, order.timeout * 0.9)

    # Listing

    def _list(self, order: Order) -> None:
        gathering = order.gathering()
        for rank in order.ranks:
            lines = [
                _line_of(order, rank.rank_id, place, item)
                for place, item in self._drawer.items()
                if rank.rank_id in self._drawer.ranks_of(item)
            ]
            gathering.answer(rank.rank_id, Answer("\n".join(lines) or "no breakpoints"))

    # Changing

    def _clear(self, order: Order) -> None:
        _check_controller(order)
        chosen = self._chosen(order, order.argument)

        def cut(place: Place, item: Wanted, ranks: set[RankId]) -> str:
            self._drawer.mention(item, f"cleared {where(place, item)}")
            self._drawer.cut(place, item, ranks)
            return f"deleted {where(place, item)}"

        self._change(order, chosen, cut)

    def _enable(self, on: bool, order: Order) -> None:
        _check_controller(order)
        if not order.argument:
            raise UsageError(f"{order.word!r} needs the numbers of breakpoints; `b` lists them")

        def switch(place: Place, item: Wanted, ranks: set[RankId]) -> str:
            item.disabled = item.disabled - ranks if on else item.disabled | ranks
            return f"{'enabled' if on else 'disabled'} {where(place, item)}"

        self._change(order, self._chosen(order, order.argument), switch)

    def _condition(self, order: Order) -> None:
        _check_controller(order)
        number, _, condition = order.argument.partition(" ")
        condition = condition.strip()
        _check_python(condition)
        if condition:
            self._check_alone(order, number, HIT)
        self._alter(order, number, CONDITION, condition)

    def _ignore(self, order: Order) -> None:
        _check_controller(order)
        number, _, count = order.argument.partition(" ")
        count = count.strip() or "0"
        if not count.isdecimal():
            raise UsageError(f"'ignore' takes a breakpoint's number and a count, not {count!r}")
        if int(count):
            self._check_alone(order, number, CONDITION)
        self._alter(order, number, HIT, f"> {count}" if int(count) else "")

    def _check_alone(self, order: Order, number: str, other: str) -> None:
        if any(other in item.clean for _, item in self._chosen(order, number)):
            raise UsageError(NOT_BOTH)

    def _alter(self, order: Order, number: str, name: str, text: str) -> None:
        """Change one part of a breakpoint; where others keep it as it was, it becomes two."""
        if not number.isdecimal():
            raise UsageError(f"{order.word!r} needs the number of a breakpoint; `b` lists them")
        new: list[tuple[Place, Wanted]] = []

        def alter(place: Place, item: Wanted, ranks: set[RankId]) -> str:
            part = self._drawer.split(place, item, ranks)
            for body in (part.body, part.clean):
                body.pop(name, None)
                body.update({name: text} if text else {})
            if part is not item:
                new.append((place, part))
            return f"{where(place, part)}: {_told_change(name, text)}"

        self._change(order, self._chosen(order, number), alter)
        for place, part in new:
            self._drawer.made(place, part)

    def _change(
        self,
        order: Order,
        chosen: list[tuple[Place, Wanted]],
        change: Callable[[Place, Wanted, set[RankId]], str],
    ) -> None:
        gathering = order.gathering()
        named = {rank.rank_id: rank for rank in order.ranks}
        lines: dict[RankId, list[str]] = {id: [] for id in named}
        places: dict[Place, dict[RankId, Rank]] = {}
        for place, item in chosen:
            ranks = self._drawer.ranks_of(item) & named.keys()
            if ranks:
                text = change(place, item, ranks)
                places.setdefault(place, {}).update((id, named[id]) for id in ranks)
                for id in ranks:
                    lines[id].append(text)
        for id in named:
            if not lines[id]:
                gathering.fail(id, "no such breakpoint here; `b` lists them")
        _Changing(gathering, lines, places).send(self._drawer, order.timeout * 0.9)

    def _chosen(self, order: Order, argument: str) -> list[tuple[Place, Wanted]]:
        """Return the breakpoints that are meant: by number, by place, or all of this client's."""
        mine = [(p, item) for p, item in self._drawer.items() if belongs(item, order.client)]
        match = _FILE_LINE.fullmatch(argument)
        if match:
            line = int(match["line"])
            return [
                (place, item)
                for place, item in mine
                if (item.told or item.body).get("line") == line
                if _ends_with(place, match["file"].strip())
            ]
        if not argument:
            return mine
        return [self._numbered(order, word) for word in argument.split()]

    def _numbered(self, order: Order, word: str) -> tuple[Place, Wanted]:
        for place, item in self._drawer.items():
            if word == str(item.id):
                if not belongs(item, order.client):
                    raise UsageError(f"breakpoint {word} is another client's: change it there")
                return place, item
        raise UsageError(f"no breakpoint {word}; `b` lists them")


class _Changing:
    """A change on its way to the ranks, in one or several files."""

    def __init__(
        self,
        gathering: Gathering,
        lines: Mapping[RankId, list[str]],
        places: Mapping[Place, Mapping[RankId, Rank]],
    ) -> None:
        self._gathering = gathering
        self._lines = lines
        self._places = places
        self._open = set(places)

    def send(self, drawer: Drawer, limit: float) -> None:
        """Tell each place's ranks."""
        for place, ranks in self._places.items():
            drawer.send(place, ranks.values(), partial(self._done, place), limit)

    def _done(self, place: Place) -> None:
        self._open.discard(place)
        if not self._open:
            for id, lines in self._lines.items():
                self._gathering.answer(id, Answer("\n".join(lines)))


def ranks_of(items: Mapping[Wanted, list[Rank]]) -> list[Rank]:
    """Return the ranks of all these."""
    return [rank for ranks in items.values() for rank in ranks]


def _answer_new(gathering: Gathering, place: Place, item: Wanted, rank: Rank) -> None:
    state = item.states.get(rank.rank_id)
    text = where(place, item)
    if item.refusal:
        gathering.fail(rank.rank_id, item.refusal)
    elif state and state.get("verified"):
        gathering.answer(rank.rank_id, Answer(text))
    elif state:
        gathering.fail(rank.rank_id, f"{text}: {state.get('message') or 'not verified'}")
    elif rank.phase not in EXPECTED:
        gathering.answer(rank.rank_id, Answer(text + WAITING))


def _end_with(gathering: Gathering, ranks: list[Rank]) -> None:
    """Whoever has not answered by now is missing."""
    if gathering.waiting and gathering.waiting <= {rank.rank_id for rank in ranks}:
        gathering.end()


def _line_of(order: Order, rank: RankId, place: Place, item: Wanted) -> str:
    """Return a line of `b`, as pdb's: number, kind, whether it is on, place, condition."""
    enabled = "no " if rank in item.disabled else "yes"
    kind = "del " if item.temporary else "keep"
    conditions = [f"if {item.clean[CONDITION]}" if CONDITION in item.clean else ""]
    conditions += [f"after {item.clean[HIT]} hits" if HIT in item.clean else ""]
    theirs = "" if belongs(item, order.client) else "(another client's)"
    spot = where(place, item).partition(" at ")[2]
    parts = [f"{item.id:<3} {kind} {enabled} {spot}", *conditions, theirs]
    return " ".join(part for part in parts if part)


def _told_change(name: str, text: str) -> str:
    if name == CONDITION:
        return f"stops only if {text}" if text else "stops always"
    return f"ignores the next {text.removeprefix('> ')} hits" if text else "ignores no hit"


def _check_controller(order: Order) -> None:
    if order.client.role != "controller":
        raise UsageError(OBSERVER)


def _check_location(location: str) -> None:
    known = location.isdecimal() or _FILE_LINE.fullmatch(location)
    if not known and not _FUNCTION.fullmatch(location):
        raise UsageError(f"{location!r} is no FILE:LINE, line or function")


def _check_python(condition: str) -> None:
    if len(condition) > LONGEST:
        raise UsageError(f"a condition has {LONGEST:,} characters at most")
    problem = syntax_problem(condition or "0", "eval")
    if problem:
        raise UsageError(f"the condition {condition!r} is no Python: {problem}")


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", path) is not None


def _ends_with(path: str, file: str) -> bool:
    tail = file.replace("\\", "/")
    whole = path.replace("\\", "/")
    return whole == tail or whole.endswith("/" + tail)
