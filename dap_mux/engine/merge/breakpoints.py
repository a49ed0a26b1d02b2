"""One breakpoint over many ranks: what each rank is sent, and what the client is told.

A condition, hit condition or log message may begin with a rank set (DESIGN.md, "Ranks in
breakpoints"). The prefix picks the ranks; the rest goes to them unchanged but for `$rank` and
its like. debugpy keeps only the last of two breakpoints on one line (FACTS), so those that meet
in one rank are united before they are sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dap_mux.rank_sets import RankId, RankSet, RankSetError, World, fold, split_prefix, substitute

Body: TypeAlias = dict[str, Any]
CONDITION: Final = "condition"
HIT: Final = "hitCondition"
LOG: Final = "logMessage"
PREFIXED: Final = (CONDITION, HIT, LOG)
_BARE: Final = re.compile(r"\s*([\w-]+\s*\.\s*)?ranks\s*\([^()]*\)\s*|\s*@[\w-]+\s*")
NO_BARRIER: Final = "barrier breakpoints are not built yet; use ranks(...) with a condition"


@dataclass(eq=False)
class Wanted:
    """A breakpoint as one client asked for it, and what each rank made of it."""

    id: int
    client: int
    body: Body
    sets: tuple[RankSet, ...] = ()
    clean: Body = field(default_factory=dict)
    refusal: str = ""
    hint: str = ""
    states: dict[RankId, Body] = field(default_factory=dict)
    told: Body | None = None

    def selects(self, rank: RankId, world: World) -> bool:
        """Whether this rank shall have it."""
        return not self.refusal and rank in self.selection(world)

    def selection(self, world: World) -> set[RankId]:
        """Return the ranks that shall have it, of those known now."""
        chosen = set(world.ranks)
        for ranks in self.sets:
            chosen &= _select(ranks, world)
        return chosen


def _select(ranks: RankSet, world: World) -> set[RankId]:
    try:
        return set(ranks.select(world, strict=False))
    except RankSetError:
        return set()  # the ranks it names are not known yet; it is asked again when they are


def want(id: int, client: int, body: Body, world: World) -> Wanted:
    """Read a client's breakpoint; what is wrong with it ends up in `refusal`."""
    wanted = Wanted(id, client, body, clean=dict(body))
    try:
        for name in PREFIXED:
            _read_prefix(wanted, name)
        for ranks in wanted.sets:
            ranks.select(world, strict=False)
    except RankSetError as error:
        wanted.refusal = str(error)
    return wanted


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


@dataclass(frozen=True)
class Slot:
    """One breakpoint as a rank is sent it, and the wanted ones that it stands for."""

    body: Body
    wanted: tuple[Wanted, ...]


def plan(
    wanted: Iterable[Wanted], rank: RankId, world: World, values: Mapping[str, object]
) -> list[Slot]:
    """Return what one rank is sent for one source: those that select it, united by place."""
    places: dict[tuple[object, ...], list[Wanted]] = {}
    for item in wanted:
        if item.selects(rank, world):
            place = (item.body.get("line"), item.body.get("column"), item.body.get("name"))
            places.setdefault(place, []).append(item)
    return [_slot(items, values) for items in places.values()]


def _slot(items: list[Wanted], values: Mapping[str, object]) -> Slot:
    bodies = [_substituted(item.clean, values) for item in items]
    return Slot(bodies[0] if len(bodies) == 1 else _united(bodies), tuple(items))


def _substituted(body: Body, values: Mapping[str, object]) -> Body:
    texts: Body = {name: substitute(body[name], values) for name in PREFIXED if name in body}
    return {**body, **texts}


def _united(bodies: list[Body]) -> Body:
    """No condition wins over a condition; two conditions become `(a) or (b)`."""
    merged = {key: value for key, value in bodies[0].items() if key not in PREFIXED}
    stops = [body for body in bodies if LOG not in body]
    if not stops:
        return {**merged, LOG: "\n".join(body[LOG] for body in bodies)}
    conditions = list(dict.fromkeys(body.get(CONDITION, "") for body in stops))
    if all(conditions):
        merged[CONDITION] = (
            conditions[0] if len(conditions) == 1 else " or ".join(f"({c})" for c in conditions)
        )
    hits = {body.get(HIT, "") for body in stops}
    if len(hits) == 1 and hits != {""}:
        merged[HIT] = hits.pop()
    return merged


def merged(wanted: Wanted, world: World, default_group: str) -> Body:
    """Return the DAP Breakpoint that the client sees for all its ranks."""
    if wanted.refusal:
        return {"id": wanted.id, "verified": False, "message": wanted.refusal} | _place(wanted.body)
    selected = sorted(wanted.selection(world))
    verified = [rank for rank in selected if wanted.states.get(rank, {}).get("verified")]
    answered = verified or [rank for rank in selected if rank in wanted.states]
    body = dict(wanted.states[answered[0]]) if answered else _place(wanted.body)
    message = _message(wanted, selected, verified, default_group) or wanted.hint
    body.pop("message", None)
    body |= {"id": wanted.id, "verified": bool(verified)}
    return body | ({"message": message} if message else {})


def _place(body: Body) -> Body:
    return {key: body[key] for key in ("line", "column") if key in body}


def _message(
    wanted: Wanted, selected: list[RankId], verified: list[RankId], default_group: str
) -> str:
    if not selected:
        return "no rank of this session is selected"
    reasons: dict[str, list[RankId]] = {}
    for rank in selected:
        if rank not in verified or wanted.states[rank].get("message"):
            reasons.setdefault(_reason(wanted, rank), []).append(rank)
    if len(selected) == 1:
        return next(iter(reasons), "")
    return "; ".join(
        f"{'ranks' if len(ranks) > 1 else 'rank'} {fold(ranks, default_group)}: {reason}"
        for reason, ranks in reasons.items()
    )


def _reason(wanted: Wanted, rank: RankId) -> str:
    state = wanted.states.get(rank)
    if state is None:
        return "not attached yet"
    return str(state.get("message") or "not verified")
