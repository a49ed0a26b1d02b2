"""pdb's commands for breakpoints: each acts on the named ranks' share of this client's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from dap_mux.engine.breakpoints.edits import BreakpointEdits, where
from dap_mux.engine.breakpoints.merge import CONDITION, HIT, Breakpoint, Temporary
from dap_mux.engine.breakpoints.store import FUNCTIONS, Place
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.pdb.command import FILE_LINE, Invocation, Run, selected
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.values.replies import Answer, ReplyCollector
from dap_mux.pure.errors import UsageError
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.remote import MAX_PARSED_CHARS, syntax_problem

OBSERVER: Final = (
    "a breakpoint lasts as long as the client that sets it: use the console or an editor"
)
NOT_BOTH: Final = "debugpy supports a condition or a hit count, not both: clear the other first"
UNKNOWN_FILE: Final = "file {!r} is not known here yet: give its full path"
WAITING: Final = " (once it is attached)"
_FUNCTION: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class BreakpointCommands:
    """Commands that set, change and remove breakpoints."""

    def __init__(self, edits: BreakpointEdits) -> None:
        self._edits = edits
        self.commands: Mapping[str, Run] = {
            "b": partial(self._break, ""),
            "tbreak": partial(self._break, "hit"),
            "cl": self._clear,
            "condition": self._condition,
            "ignore": self._ignore,
            "enable": partial(self._enable, True),
            "disable": partial(self._enable, False),
        }

    # Setting

    def _break(self, kind: Temporary, invocation: Invocation) -> None:
        if not invocation.argument:
            self._list(invocation)
            return
        _check_controller(invocation)
        location, _, condition = (part.strip() for part in invocation.argument.partition(","))
        _check_location(location)
        _check_python(condition)
        collector = invocation.collector()
        places: dict[tuple[Place, int], list[Rank]] = {}
        for rank in invocation.ranks:
            place = self._place(invocation, rank, location)
            if isinstance(place, str):
                collector.fail(rank.rank_id, place)
            else:
                places.setdefault(place, []).append(rank)
        for (place, line), ranks in places.items():
            body: Body = {"name": location} if place == FUNCTIONS else {"line": line}
            body |= {CONDITION: condition} if condition else {}
            item = self._edits.make(invocation.client.id, place, body, ranks, kind)
            self._apply(invocation, collector, place, item, ranks)

    def _place(self, invocation: Invocation, rank: Rank, location: str) -> tuple[Place, int] | str:
        """Return file and line (a function: `FUNCTIONS`, 0), or why there is none."""
        if location.isdecimal():
            frame = selected(rank)
            if frame is None:
                return f"is {rank.state}: a line without a file needs a stopped rank"
            return frame.path, int(location)
        match = FILE_LINE.fullmatch(location)
        if match is None:
            return FUNCTIONS, 0
        file = match["file"].strip()
        path = self._path(invocation, rank, file)
        return (path, int(match["line"])) if path else UNKNOWN_FILE.format(file)

    def _path(self, invocation: Invocation, rank: Rank, file: str) -> Place:
        """Return what a file's name means in this rank: of its stack, or known at all; else ''."""
        sent = invocation.client.translation.path(file) if invocation.client.translation else file
        if _is_absolute(sent):
            return sent
        frames = [frame.path for frame in (rank.stop.frames or () if rank.stop else ())]
        ranks = invocation.core.sorted_ranks()
        others = [f.path for r in ranks if r.stop for f in r.stop.frames or ()]
        places = [place for place, _ in self._edits.items()]
        known = [path for path in (*frames, *places, *others) if _ends_with(path, sent)]
        if known:
            return known[0]
        if frames:
            head = re.split(r"[\\/][^\\/]*\Z", frames[0])[0]
            return f"{head}/{sent}"
        return ""

    def _apply(
        self,
        invocation: Invocation,
        collector: ReplyCollector,
        place: Place,
        item: Breakpoint,
        ranks: list[Rank],
    ) -> None:
        """Send a place to the ranks, then answer with what they made of the new breakpoint."""

        def done() -> None:
            self._edits.made(place, item)
            for rank in ranks:
                _answer_new(collector, place, item, rank)
            if collector.waiting and collector.waiting <= {rank.rank_id for rank in ranks}:
                collector.end()  # those that have not answered by now are missing

        self._edits.send(place, ranks, done, invocation.timeout * 0.9)

    # Listing

    def _list(self, invocation: Invocation) -> None:
        collector = invocation.collector()
        for rank in invocation.ranks:
            lines = [
                _line_of(invocation, rank.rank_id, place, item)
                for place, item in self._edits.items()
                if rank.rank_id in self._edits.ranks_of(item)
            ]
            collector.answer(rank.rank_id, Answer("\n".join(lines) or "no breakpoints"))

    # Changing

    def _clear(self, invocation: Invocation) -> None:
        _check_controller(invocation)
        chosen = self._chosen(invocation, invocation.argument)

        def cut(place: Place, item: Breakpoint, ranks: set[RankId]) -> str:
            self._edits.mention(item, f"cleared {where(place, item)}")
            self._edits.cut(place, item, ranks)
            return f"deleted {where(place, item)}"

        self._change(invocation, chosen, cut)

    def _enable(self, on: bool, invocation: Invocation) -> None:
        _check_controller(invocation)
        if not invocation.argument:
            raise UsageError(
                f"{invocation.command!r} needs the numbers of breakpoints; `b` lists them"
            )

        def switch(place: Place, item: Breakpoint, ranks: set[RankId]) -> str:
            item.disabled = item.disabled - ranks if on else item.disabled | ranks
            return f"{'enabled' if on else 'disabled'} {where(place, item)}"

        self._change(invocation, self._chosen(invocation, invocation.argument), switch)

    def _condition(self, invocation: Invocation) -> None:
        _check_controller(invocation)
        number, _, condition = invocation.argument.partition(" ")
        condition = condition.strip()
        _check_python(condition)
        if condition:
            self._check_alone(invocation, number, HIT)
        self._alter(invocation, number, CONDITION, condition)

    def _ignore(self, invocation: Invocation) -> None:
        _check_controller(invocation)
        number, _, count = invocation.argument.partition(" ")
        count = count.strip() or "0"
        if not count.isdecimal():
            raise UsageError(f"'ignore' takes a breakpoint's number and a count, not {count!r}")
        if int(count):
            self._check_alone(invocation, number, CONDITION)
        self._alter(invocation, number, HIT, f"> {count}" if int(count) else "")

    def _check_alone(self, invocation: Invocation, number: str, other: str) -> None:
        if any(other in item.clean for _, item in self._chosen(invocation, number)):
            raise UsageError(NOT_BOTH)

    def _alter(self, invocation: Invocation, number: str, name: str, text: str) -> None:
        """Change one part of a breakpoint; where others keep it as it was, it becomes two."""
        if not number.isdecimal():
            raise UsageError(
                f"{invocation.command!r} needs the number of a breakpoint; `b` lists them"
            )
        new: list[tuple[Place, Breakpoint]] = []

        def alter(place: Place, item: Breakpoint, ranks: set[RankId]) -> str:
            part = self._edits.split(place, item, ranks)
            for body in (part.body, part.clean):
                body.pop(name, None)
                body.update({name: text} if text else {})
            if part is not item:
                new.append((place, part))
            rest = f" (split off {item.id}, which other ranks keep)" if part is not item else ""
            return f"{where(place, part)}: {_told_change(name, text)}{rest}"

        self._change(invocation, self._chosen(invocation, number), alter)
        for place, part in new:
            self._edits.made(place, part)

    def _change(
        self,
        invocation: Invocation,
        chosen: list[tuple[Place, Breakpoint]],
        change: Callable[[Place, Breakpoint, set[RankId]], str],
    ) -> None:
        collector = invocation.collector()
        named = {rank.rank_id: rank for rank in invocation.ranks}
        lines: dict[RankId, list[str]] = {id: [] for id in named}
        places: dict[Place, dict[RankId, Rank]] = {}
        for place, item in chosen:
            ranks = self._edits.ranks_of(item) & named.keys()
            if ranks:
                text = change(place, item, ranks)
                places.setdefault(place, {}).update((id, named[id]) for id in ranks)
                for id in ranks:
                    lines[id].append(text)
        for id in named:
            if not lines[id]:
                collector.fail(id, "no such breakpoint here; `b` lists them")
        self._send_changes(invocation, collector, lines, places)

    def _send_changes(
        self,
        invocation: Invocation,
        collector: ReplyCollector,
        lines: Mapping[RankId, list[str]],
        places: Mapping[Place, Mapping[RankId, Rank]],
    ) -> None:
        """Send the places to their ranks; answer what has changed once all have taken them up."""

        def done(_: frozenset[Place]) -> None:
            for id, changed in lines.items():
                collector.answer(id, Answer("\n".join(changed)))

        join = Join(invocation.core, places, done)
        for place, ranks in places.items():
            then = partial(join.arrive, place)
            self._edits.send(place, ranks.values(), then, invocation.timeout * 0.9)

    def _chosen(self, invocation: Invocation, argument: str) -> list[tuple[Place, Breakpoint]]:
        """Return the breakpoints that are meant: by number, by place, or all of this client's."""
        mine = [(p, item) for p, item in self._edits.items() if item.client == invocation.client.id]
        match = FILE_LINE.fullmatch(argument)
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
        return [self._numbered(invocation, number) for number in argument.split()]

    def _numbered(self, invocation: Invocation, number: str) -> tuple[Place, Breakpoint]:
        for place, item in self._edits.items():
            if number == str(item.id):
                if item.client != invocation.client.id:
                    raise UsageError(f"breakpoint {number} is another client's: change it there")
                return place, item
        raise UsageError(f"no breakpoint {number}; `b` lists them")


def _answer_new(collector: ReplyCollector, place: Place, item: Breakpoint, rank: Rank) -> None:
    state = item.states.get(rank.rank_id)
    text = where(place, item)
    if item.refusal:
        collector.fail(rank.rank_id, item.refusal)
    elif state and state.get("verified"):
        collector.answer(rank.rank_id, Answer(text + _moved(item, state)))
    elif state:
        collector.fail(rank.rank_id, f"{text}: {state.get('message') or 'not verified'}")
    elif not rank.phase.configurable_soon:
        collector.answer(rank.rank_id, Answer(text + WAITING))


def _moved(item: Breakpoint, state: Body) -> str:
    asked = item.body.get("line")
    same = asked is None or state.get("line", asked) == asked
    return "" if same else f" (line {asked} has no code)"


def _line_of(invocation: Invocation, rank: RankId, place: Place, item: Breakpoint) -> str:
    """Return a line of `b`, as pdb's: number, kind, whether it is on, place, condition."""
    enabled = "no " if rank in item.disabled else "yes"
    kind = "del " if item.temporary else "keep"
    conditions = [f"if {item.clean[CONDITION]}" if CONDITION in item.clean else ""]
    conditions += [f"after {item.clean[HIT]} hits" if HIT in item.clean else ""]
    theirs = "" if item.client == invocation.client.id else "(another client's)"
    spot = where(place, item).partition(" at ")[2]
    parts = [f"{item.id:<3} {kind} {enabled} {spot}", *conditions, theirs]
    return " ".join(part for part in parts if part)


def _told_change(name: str, text: str) -> str:
    if name == CONDITION:
        return f"stops only if {text}" if text else "stops always"
    return f"ignores the next {text.removeprefix('> ')} hits" if text else "ignores no hits"


def _check_controller(invocation: Invocation) -> None:
    if invocation.client.role != "controller":
        raise UsageError(OBSERVER)


def _check_location(location: str) -> None:
    known = location.isdecimal() or FILE_LINE.fullmatch(location)
    if not known and not _FUNCTION.fullmatch(location):
        raise UsageError(f"{location!r} is not FILE:LINE, a line or a function")


def _check_python(condition: str) -> None:
    if len(condition) > MAX_PARSED_CHARS:
        raise UsageError(f"a condition may have at most {MAX_PARSED_CHARS:,} characters")
    problem = syntax_problem(condition or "0", "eval")
    if problem:
        raise UsageError(f"the condition {condition!r} is not valid Python: {problem}")


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", path) is not None


def _ends_with(path: str, file: str) -> bool:
    tail = file.replace("\\", "/")
    whole = path.replace("\\", "/")
    return whole == tail or whole.endswith("/" + tail)
