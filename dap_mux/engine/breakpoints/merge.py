"""One breakpoint over many ranks: which ranks have it, and what its client is told.

A condition, hit condition or log message may begin with a rank set: `ranks(2): loss > 3`. The
prefix selects the ranks; the rest goes to them unchanged, except for `$rank` and the like. Several
on one line are united before they are sent: see `union`.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from dap_mux.engine.source_files.comparison import NOTHING_WRONG, AboutFile
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import (
    RankId,
    RankSet,
    RankSetError,
    World,
    fold,
)
from dap_mux.pure.rank_sets.debuggees import DebuggeeId, rank_of, worker_of
from dap_mux.pure.rank_sets.world import Differ

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
    verified = [rank for rank in selected if breakpoint.states.get(rank, {}).get("verified")]
    answered = verified or [rank for rank in selected if rank in breakpoint.states]
    body = dict(breakpoint.states[answered[0]]) if answered else _place(breakpoint.body)
    others = [rank for rank in selected if rank not in about.missing]
    reasons = _reasons(breakpoint, others, verified, default_group, alone=len(selected) == 1)
    message = "; ".join([*reasons, *about.sentences]) or breakpoint.hint
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
    answered = sorted(rank for rank in breakpoint.selection(world) if rank in breakpoint.states)
    verified = [rank for rank in answered if breakpoint.verified_in(rank)]
    others = [rank for rank in answered if rank not in about.missing]
    alone = len(breakpoint.selection(world)) == 1
    reasons = _reasons(breakpoint, others, verified, default_group, alone=alone)
    return "; ".join([*reasons, *about.sentences]) or breakpoint.hint


def _place(body: Body) -> Body:
    return {key: body[key] for key in ("line", "column") if key in body}


def _reasons(
    breakpoint: Breakpoint,
    ranks: list[RankId],
    verified: list[RankId],
    default_group: str,
    *,
    alone: bool,
) -> list[str]:
    """Return why it is not verified in these ranks; `alone`: without naming the only one."""
    reasons: dict[str, list[RankId]] = {}
    good = set(verified)
    for rank in ranks:
        if rank not in good or breakpoint.states[rank].get("message"):
            reasons.setdefault(_reason(breakpoint, rank), []).append(rank)
    if alone:
        return list(reasons)
    return [
        f"{'ranks' if len(ranks) > 1 else 'rank'} {fold(ranks, default_group)}: {reason}"
        for reason, ranks in reasons.items()
    ]


def _reason(breakpoint: Breakpoint, rank: RankId) -> str:
    state = breakpoint.states.get(rank)
    if state is None:
        return "not attached yet"
    return str(state.get("message") or "not verified")
