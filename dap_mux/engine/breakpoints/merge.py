"""One breakpoint over many ranks: what each rank is sent, and what the client is told.

A condition, hit condition or log message may begin with a rank set: `ranks(2): loss > 3`. The
prefix picks the ranks; the rest goes to them unchanged but for `$rank` and its like. Those that
meet on one line are united before they are sent: see `union`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from dap_mux.engine.source_files.comparison import NOTHING_WRONG, AboutFile
from dap_mux.engine.state.bodies import Body
from dap_mux.rank_sets import RankId, RankSet, RankSetError, World, fold, split_prefix
from dap_mux.rank_sets.debuggees import DebuggeeId, rank_of

CONDITION: Final = "condition"
HIT: Final = "hitCondition"
LOG: Final = "logMessage"
PREFIXED: Final = (CONDITION, HIT, LOG)
_BARE: Final = re.compile(r"\s*([\w-]+\s*\.\s*)?ranks\s*\([^()]*\)\s*|\s*@[\w-]+\s*")
_PLACE: Final = "line column endLine endColumn source instructionReference offset"
_FIELDS: Final = frozenset(f"id verified message reason {_PLACE}".split())
Temporary: TypeAlias = Literal["", "hit", "stop"]
NO_BARRIER: Final = "barrier breakpoints are not built yet; use ranks(...) with a condition"


@dataclass(eq=False)
class Wanted:
    """A breakpoint as one client asked for it, and what each rank made of it.

    `since`: the id it had when its client first asked for it; editors send all again each time.
    `only`: the ranks a command named, None for any. `off`, `disabled`: those it was taken from.
    `temporary`: over in a rank with its first `hit`, or with any `stop`.
    """

    id: int
    client: int
    body: Body
    since: int = 0
    sets: tuple[RankSet, ...] = ()
    clean: Body = field(default_factory=dict)
    refusal: str = ""
    hint: str = ""
    states: dict[DebuggeeId, Body] = field(default_factory=dict)
    told: Body | None = None
    only: frozenset[RankId] | None = None
    off: set[RankId] = field(default_factory=set)
    disabled: set[RankId] = field(default_factory=set)
    temporary: Temporary = ""
    by_command: bool = False  # clients' own lists need not repeat it
    adopted: bool = False  # but this client's list does, so leaving it out there takes it away

    def replaces(self, older: Wanted) -> None:
        """This is the same breakpoint, sent again: what commands made of it stays."""
        self.since = min(self.since, older.since)
        self.off, self.disabled = older.off, older.disabled

    def succeeds(self, older: Wanted) -> bool:
        """Whether this is the same breakpoint, sent again."""
        same = ("line", "column", "name")
        return (LOG in self.body) == (LOG in older.body) and all(
            self.body.get(key) == older.body.get(key) for key in same
        )

    def verified_in(self, rank: DebuggeeId) -> bool:
        """Whether a rank has it."""
        return bool(self.states.get(rank, {}).get("verified"))

    def line_in(self, rank: DebuggeeId) -> object:
        """Return the line it has in a rank: debugpy moves it where there is no code."""
        moved = self.states[rank].get("line") if self.verified_in(rank) else None
        return moved if isinstance(moved, int) else self.body.get("line")

    def spot_in(self, rank: DebuggeeId) -> tuple[object, object]:
        """Return its line, or its function's name: debugpy has one breakpoint on each."""
        name = self.body.get("name")
        return (None if name else self.line_in(rank)), name

    def selects(self, rank: DebuggeeId, world: World) -> bool:
        """Whether this rank shall have it."""
        return not self.refusal and rank_of(rank) in self.selection(world)

    def selection(self, world: World) -> set[RankId]:
        """Return the ranks that shall have it, of those known now."""
        chosen = set(world.ranks)
        for ranks in self.sets:
            chosen &= _select(ranks, world)
        if self.only is not None:
            chosen &= self.only
        return chosen - self.off - self.disabled


def updated(state: Body, event: Body) -> Body:
    """Return what a rank has made of a breakpoint, after its event about it.

    Fields that DAP does not know are passed on, and kept until the next event only.
    """
    return {name: value for name, value in state.items() if name in _FIELDS} | event


def _select(ranks: RankSet, world: World) -> set[RankId]:
    try:
        return set(ranks.select(world, strict=False))
    except RankSetError:
        return set()  # the ranks it names are not known yet; it is asked again when they are


def want(id: int, client: int, body: Body, world: World) -> Wanted:
    """Read a client's breakpoint; what is wrong with it ends up in `refusal`."""
    wanted = Wanted(id, client, body, since=id, clean=dict(body))
    try:
        for name in PREFIXED:
            _read_prefix(wanted, name)
        for ranks in wanted.sets:
            ranks.select(world, strict=False)
    except RankSetError as error:
        wanted.refusal = str(error)
    return wanted


def adopted(known: Iterable[Wanted], body: Body) -> Wanted | None:
    """Return the breakpoint of a command that a client's list means by `body`.

    Some editors take a breakpoint that they are told of for their own, and then send its line.
    """
    for one in known:
        line = (one.told or one.body).get("line")
        plain = not any(body.get(name) for name in PREFIXED)
        if one.by_command and plain and line is not None and line == body.get("line"):
            one.adopted = True
            return one
    return None


def _read_prefix(wanted: Wanted, name: str) -> None:
    text = wanted.body.get(name)
    if not isinstance(text, str):
        return
    prefix = split_prefix(text)
    if prefix.barrier:
        wanted.refusal = NO_BARRIER
    if prefix.ranks is not None:
        wanted.sets += (prefix.ranks,)
    elif name == CONDITION and _BARE.fullmatch(text):
        wanted.hint = f"this is Python as it stands; if it means ranks, add a colon: {text}:"
    wanted.clean[name] = prefix.rest
    if not prefix.rest:
        del wanted.clean[name]


NONE_UP: Final = "no rank is up yet; set when they come"


def merged(
    wanted: Wanted, world: World, default_group: str, about: AboutFile = NOTHING_WRONG
) -> Body:
    """Return the DAP Breakpoint that the client sees for all its ranks.

    `about`: in which ranks its file is missing or another one.
    """
    if wanted.refusal:
        return {"id": wanted.id, "verified": False, "message": wanted.refusal} | _place(wanted.body)
    selected = sorted(wanted.selection(world))
    verified = [rank for rank in selected if wanted.states.get(rank, {}).get("verified")]
    answered = verified or [rank for rank in selected if rank in wanted.states]
    body = dict(wanted.states[answered[0]]) if answered else _place(wanted.body)
    others = [rank for rank in selected if rank not in about.missing]
    reasons = _reasons(wanted, others, verified, default_group, alone=len(selected) == 1)
    message = "; ".join([*reasons, *about.sentences]) or wanted.hint
    if not wanted.states and not wanted.disabled and not about.sentences and _none_up(world):
        message = NONE_UP
    elif not selected:
        message = "disabled" if wanted.disabled else "no rank of this session is selected"
    body.pop("message", None)
    body |= {"id": wanted.id, "verified": bool(verified)}
    return body | ({"message": message} if message else {})


def _none_up(world: World) -> bool:
    return all(state in ("waiting", "connecting") for state in world.states.values())


def problem(wanted: Wanted, world: World, default_group: str, about: AboutFile) -> str:
    """Return what is wrong with it in the ranks that have answered; "" where nothing is."""
    if wanted.refusal:
        return wanted.refusal
    answered = sorted(rank for rank in wanted.selection(world) if rank in wanted.states)
    verified = [rank for rank in answered if wanted.verified_in(rank)]
    others = [rank for rank in answered if rank not in about.missing]
    alone = len(wanted.selection(world)) == 1
    reasons = _reasons(wanted, others, verified, default_group, alone=alone)
    return "; ".join([*reasons, *about.sentences]) or wanted.hint


def _place(body: Body) -> Body:
    return {key: body[key] for key in ("line", "column") if key in body}


def _reasons(
    wanted: Wanted,
    ranks: list[RankId],
    verified: list[RankId],
    default_group: str,
    *,
    alone: bool,
) -> list[str]:
    """Return why it is not verified in these ranks, `alone` without naming the only one."""
    reasons: dict[str, list[RankId]] = {}
    for rank in ranks:
        if rank not in verified or wanted.states[rank].get("message"):
            reasons.setdefault(_reason(wanted, rank), []).append(rank)
    if alone:
        return list(reasons)
    return [
        f"{'ranks' if len(ranks) > 1 else 'rank'} {fold(ranks, default_group)}: {reason}"
        for reason, ranks in reasons.items()
    ]


def _reason(wanted: Wanted, rank: RankId) -> str:
    state = wanted.states.get(rank)
    if state is None:
        return "not attached yet"
    return str(state.get("message") or "not verified")
