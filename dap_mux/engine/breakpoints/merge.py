"""One breakpoint over many ranks: as it is read, which ranks have it, what its client is told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, field

from dap_mux.engine.messages.requests import DIFFER, TOGETHER
from dap_mux.engine.source_files.diagnosis import NOTHING_WRONG, AboutFile
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import (
    RankId,
    RankSet,
    RankSetError,
    UnknownDimension,
    World,
    fold,
    split_condition,
    split_prefix,
)
from dap_mux.pure.rank_sets.tokens import Place
from dap_mux.pure.rank_sets.world import DebuggeeId, Differ, rank_of, worker_of
from dap_mux.pure.remote import is_expression

if TYPE_CHECKING:
    from dap_mux.pure.rank_sets.prefix import Prefix


CONDITION: Final = "condition"
HIT: Final = "hitCondition"
LOG: Final = "logMessage"
PREFIXED: Final = (CONDITION, HIT, LOG)
_PLACE: Final = "line column endLine endColumn source instructionReference offset"
_FIELDS: Final = frozenset(f"id verified message reason {_PLACE}".split())
Temporary: TypeAlias = Literal["", "hit", "stop"]
Spot: TypeAlias = tuple[object, object]
"""A line and None, or None and a function's name."""


class Breakpoint(Struct, eq=False):
    """A breakpoint that one client has asked for, and its state in each rank.

    `since`: its id when its client first sent it; editors send the whole list each time. `only`:
    the ranks that a command named, None for all. `off`, `disabled`: the ranks that it was removed
    from, or disabled in. `temporary`: removed from a rank at its first `hit`, or at any `stop`.
    `barrier`: ranks stop there all together, with `differ` only where `compared` differs.
    `tries`: a barrier's rounds that have failed since it was set in ranks that ran; None: rounds
    do not fail, because its ranks are in step.
    """

    id: int
    client: int
    body: Body
    since: int = 0
    sets: tuple[RankSet, ...] = ()
    clean: Body = field(default_factory=dict)
    refusal: str = ""
    unknown: str = ""  # the same, where it is a dimension that is not known
    hint: str = ""
    states: dict[DebuggeeId, Body] = field(default_factory=dict)
    told: Body | None = None
    only: frozenset[RankId] | None = None
    off: set[RankId] = field(default_factory=set)
    disabled: set[RankId] = field(default_factory=set)
    temporary: Temporary = ""
    by_command: bool = False  # it stays although its client's list does not contain it
    adopted: bool = False  # this client's list does contain it, so leaving it out removes it
    barrier: bool = False
    differ: Differ | None = None
    compared: str = ""
    tries: int | None = None
    keeps_mode: bool = False  # its editor has dropped the mode; see `mode_kept`

    def replaces(self, older: Breakpoint) -> None:
        """Keep the changes that commands have made to the same breakpoint, sent before."""
        self.since = min(self.since, older.since)
        self.off, self.disabled = older.off, older.disabled
        if older.barrier:
            self.tries = older.tries

    def succeeds(self, older: Breakpoint) -> bool:
        """Whether this is the same breakpoint, sent again."""
        same = ("line", "column", "name")
        return (LOG in self.body) == (LOG in older.body) and all(
            self.body.get(key) == older.body.get(key) for key in same
        )

    def verified_in(self, rank: DebuggeeId) -> bool:
        """Whether a rank has verified it."""
        return bool(self.states.get(rank, {}).get("verified"))

    def spot_in(self, rank: DebuggeeId) -> Spot:
        """Return its line, or its function's name: debugpy keeps one breakpoint for each."""
        return self.spot_of(self.states.get(rank, {}))

    def spot_of(self, state: Body) -> Spot:
        """Return the same for its state in a rank: debugpy moves it if the line has no code."""
        name = self.body.get("name")
        if name:
            return None, name
        moved = state.get("line") if state.get("verified") else None
        return (moved if isinstance(moved, int) else self.body.get("line")), name

    def selects(self, rank: DebuggeeId, world: World) -> bool:
        """Whether this rank should have it; without its sets no look at the other ranks."""
        id = rank_of(rank)
        if self.refusal or id in self.off or id in self.disabled:
            return False
        if self.barrier and worker_of(rank) is not None:
            return False
        named = self.only is None or id in self.only
        return named and id in world and all(id in _select(ranks, world) for ranks in self.sets)

    @property
    def is_for_all(self) -> bool:
        """Whether every rank should have it, whichever ranks there are."""
        named = self.only is not None or self.sets or self.off or self.disabled
        return not (named or self.refusal or self.barrier)

    def selection(self, world: World) -> set[RankId]:
        """Return the known ranks that should have it."""
        chosen = set(world.ranks)
        for ranks in self.sets:
            chosen &= _select(ranks, world)
        if self.only is not None:
            chosen &= self.only
        return chosen - self.off - self.disabled


def updated(state: Body, event: Body) -> Body:
    """Return the state of a breakpoint in a rank after its `breakpoint` event.

    Fields that are not DAP's are passed on, but kept only until the next event; so is the reason
    why it was not verified.
    """
    kept = {name: value for name, value in state.items() if name in _FIELDS}
    if event.get("verified"):
        kept.pop("message", None)
    return kept | event


def _select(ranks: RankSet, world: World) -> set[RankId]:
    try:
        return set(ranks.select(world, strict=False))
    except RankSetError:
        return set()  # the ranks it names are not known yet; selected again when they are


NONE_UP: Final = "no rank is up yet; it is set once one starts"


# A condition, hit condition or log message may begin with a rank set: `ranks(2): loss > 3`. The
# prefix selects the ranks; the rest goes to them unchanged, except for `$rank` and the like.
# Several on one line are united before they are sent: see `union`.
def merged(
    breakpoint: Breakpoint, world: World, default_group: str, about: AboutFile = NOTHING_WRONG
) -> Body:
    """Return the DAP Breakpoint that the client sees, for all ranks together.

    `about`: the ranks where its file is missing or differs.
    """
    if breakpoint.refusal:
        return {"id": breakpoint.id, "verified": False, "message": breakpoint.refusal} | _place(
            breakpoint.body
        )
    selected = sorted(breakpoint.selection(world))
    verified = [rank for rank in selected if breakpoint.verified_in(rank)]
    answered = verified or [rank for rank in selected if rank in breakpoint.states]
    body = dict(breakpoint.states[answered[0]]) if answered else _place(breakpoint.body)
    message = _message(breakpoint, selected, default_group, about, alone=len(selected) == 1)
    if (
        not breakpoint.states
        and not breakpoint.disabled
        and not about.sentences
        and _none_up(world)
    ):
        message = NONE_UP
    elif not selected:
        message = "disabled" if breakpoint.disabled else "no rank of this session is selected"
    body.pop("message", None)
    body |= {"id": breakpoint.id, "verified": bool(verified)}
    return body | ({"message": message} if message else {})


def _none_up(world: World) -> bool:
    return all(state in ("waiting", "connecting") for state in world.states.values())


def problem(breakpoint: Breakpoint, world: World, default_group: str, about: AboutFile) -> str:
    """Return what is wrong with it in the ranks that have answered, "" if nothing is."""
    if breakpoint.refusal:
        return breakpoint.refusal
    selected = breakpoint.selection(world)
    answered = sorted(selected & breakpoint.states.keys())
    return _message(breakpoint, answered, default_group, about, alone=len(selected) == 1)


def _place(body: Body) -> Body:
    return {key: body[key] for key in ("line", "column") if key in body}


def _message(
    breakpoint: Breakpoint,
    ranks: list[RankId],
    default_group: str,
    about: AboutFile,
    *,
    alone: bool,
) -> str:
    """Return why it is not verified in these ranks; `alone`: without naming the only one."""
    reasons: dict[str, list[RankId]] = {}
    for rank in ranks:
        good = breakpoint.verified_in(rank) and not breakpoint.states[rank].get("message")
        if not good and rank not in about.missing:
            reasons.setdefault(_reason(breakpoint, rank), []).append(rank)
    named = [
        f"{'ranks' if len(ranks) > 1 else 'rank'} {fold(ranks, default_group)}: {reason}"
        for reason, ranks in reasons.items()
    ]
    return "; ".join([*(reasons if alone else named), *about.sentences]) or breakpoint.hint


def _reason(breakpoint: Breakpoint, rank: RankId) -> str:
    state = breakpoint.states.get(rank)
    if state is None:
        return "not attached yet"
    return str(state.get("message") or "not verified")


# A client's breakpoint as it is read: the ranks in its texts, its barrier, and what is wrong.

_BARE: Final = r"\s*([\w-]+\s*\.\s*)?ranks\s*\([^()]*\)\s*|\s*@[\w-]+\s*"
_SHARE: Final = re.compile(r"(?P<number>[0-9]*\.?[0-9]+(?:e-?[0-9]{1,3})?)(?P<percent>%?)\s*")
_FORMAT: Final = re.compile(r"\{\s*([\w.]+)\s*:([^{}:]*)\}")  # `{loss:.3f}`, as in an f-string
NO_EXPRESSION: Final = "write the expression to compare as the condition"
MODE_KEPT: Final = "the mode '{}' is kept; choose 'each rank' to end it"
BARRIER_LOGS: Final = "a log message never stops a rank, so it has no barrier"


def read_breakpoint(id: int, client: int, body: Body, world: World) -> Breakpoint:
    """Read a client's breakpoint; if something is wrong with it, `refusal` says what."""
    breakpoint = Breakpoint(id, client, body, since=id, clean=dict(body))
    try:
        for name in PREFIXED:
            _read_prefix(breakpoint, name)
        _read_mode(breakpoint)
    except RankSetError as error:
        breakpoint.refusal = str(error)
    else:
        check_sets(breakpoint, world)
        if breakpoint.barrier and _any_runs(breakpoint.selection(world), world):
            breakpoint.tries = 0
    return breakpoint


def _any_runs(ranks: Iterable[RankId], world: World) -> bool:
    return any(world.states.get(id) in ("running", "pausing") for id in ranks)


def check_sets(breakpoint: Breakpoint, world: World) -> None:
    """See whether its rank sets mean anything; a dimension that is not known may yet come."""
    if breakpoint.refusal not in ("", breakpoint.unknown):
        return
    breakpoint.refusal = breakpoint.unknown = ""
    try:
        for ranks in breakpoint.sets:
            ranks.select(world, strict=False)
        _check_dimensions(breakpoint, world)
    except UnknownDimension as error:
        breakpoint.refusal = breakpoint.unknown = str(error)
    except RankSetError as error:
        breakpoint.refusal = str(error)


def adopt(known: Iterable[Breakpoint], body: Body) -> Breakpoint | None:
    """Return the breakpoint set by a command that `body` in a client's list stands for.

    Some editors add a breakpoint that they are told of to their own list, and then send its line.
    """
    for one in known:
        line = (one.told or one.body).get("line")
        plain = not any(body.get(name) for name in PREFIXED)
        if one.by_command and plain and line is not None and line == body.get("line"):
            one.adopted = True
            return one
    return None


def mode_kept(known: Iterable[Breakpoint], body: Body) -> str:
    """Return the mode that a breakpoint had before its condition was edited; "" where it has none.

    VS Code sends no mode any more once a condition is edited, unless its user chooses one.
    """
    new = Breakpoint(0, 0, body)
    older = next((one for one in known if new.succeeds(one)), None)
    if older is None or body.get("mode") or not body.get(CONDITION):
        return ""
    edited = older.keeps_mode or older.body.get(CONDITION) != body[CONDITION]
    mode = older.body.get("mode")
    return str(mode) if edited and mode in (TOGETHER, DIFFER) else ""


def _read_prefix(breakpoint: Breakpoint, name: str) -> None:
    text = breakpoint.body.get(name)
    if not isinstance(text, str):
        return
    prefix = split_condition(text) if name == CONDITION else split_prefix(text)
    _read_barrier(breakpoint, prefix)
    if prefix.ranks is not None:
        breakpoint.sets += (prefix.ranks,)
    elif name == CONDITION and re.fullmatch(_BARE, text):
        breakpoint.hint = f"this is read as Python; to select ranks, add a colon: {text}:"
    elif name == LOG and (found := _FORMAT.search(text)):
        breakpoint.hint = f"debugpy knows no formats: {{format({found[1]}, {found[2]!r})}}"
    breakpoint.clean[name] = prefix.rest
    rest = prefix.rest.strip() if name == CONDITION else prefix.rest  # a text may be a blank
    if not rest or prefix.differ:
        del breakpoint.clean[name]


def _read_barrier(breakpoint: Breakpoint, prefix: Prefix) -> None:
    breakpoint.barrier |= prefix.barrier or prefix.differ is not None
    if prefix.differ:
        _compares(breakpoint, prefix.differ, prefix.rest)


def _compares(breakpoint: Breakpoint, differ: Differ, text: str) -> None:
    """Keep what is compared, `loss` or `loss within 1%`."""
    expression, _, share = text.rpartition(" within ")
    found = _SHARE.fullmatch(share) if expression else None
    if found:
        unit = 0.01 if found["percent"] else 1.0
        text, differ = expression, differ._replace(tolerance=float(found["number"]) * unit)
    breakpoint.differ, breakpoint.compared = differ, text


def _read_mode(breakpoint: Breakpoint) -> None:
    """Read the mode that the editor has set, which means the same as its word in a condition."""
    mode = breakpoint.clean.pop("mode", None)
    breakpoint.barrier |= mode in (TOGETHER, DIFFER)
    if mode == DIFFER and not breakpoint.differ:
        _compares(breakpoint, Differ(), breakpoint.clean.pop(CONDITION, ""))
    if breakpoint.barrier and LOG in breakpoint.body:
        breakpoint.refusal = BARRIER_LOGS
    elif breakpoint.differ and not breakpoint.compared.strip():
        breakpoint.refusal = NO_EXPRESSION
    elif breakpoint.differ and not is_expression(breakpoint.compared.replace("$", "_")):
        breakpoint.refusal = f"not a Python expression: {breakpoint.compared}"


def _check_dimensions(breakpoint: Breakpoint, world: World) -> None:
    """The dimensions of `differ(dp)` have to be those of the meshes of its ranks."""
    for name in breakpoint.differ.dimensions if breakpoint.differ else ():
        place = Place(f"differ({name})", len("differ("), len(name))
        for group in sorted({id[0] for id in breakpoint.selection(world)}):
            mesh = world.meshes.get(group)
            if mesh is None or name not in dict(mesh.dims):
                message = f"group {group} has no mesh dimension '{name}'"
                raise UnknownDimension(group, message, place)
