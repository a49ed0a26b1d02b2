"""A client's breakpoint as it is read: the ranks in its texts, its barrier, and what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dap_mux.engine.breakpoints.merge import CONDITION, LOG, PREFIXED, Breakpoint
from dap_mux.engine.messages.capabilities import DIFFER, TOGETHER
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import (
    RankId,
    RankSetError,
    UnknownDimension,
    World,
    split_condition,
    split_prefix,
)
from dap_mux.pure.rank_sets.errors import Place
from dap_mux.pure.rank_sets.world import Differ
from dap_mux.pure.remote.python_syntax import is_expression

if TYPE_CHECKING:
    from dap_mux.pure.rank_sets.prefix import Prefix

_BARE: Final = r"\s*([\w-]+\s*\.\s*)?ranks\s*\([^()]*\)\s*|\s*@[\w-]+\s*"
_SHARE: Final = re.compile(r"(?P<number>[0-9]*\.?[0-9]+(?:e-?[0-9]{1,3})?)(?P<percent>%?)\s*")
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
