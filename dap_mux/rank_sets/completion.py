"""What may stand at a column of a rank set: for consoles, editors and the language server.

The parser itself decides: a word is offered where the text with it, made whole, parses and
means something in this world. So completion is never out of step with the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dap_mux.rank_sets.errors import RankSetError
from dap_mux.rank_sets.grammar import parse
from dap_mux.rank_sets.tokens import NAME, WORD
from dap_mux.rank_sets.world import STATES, World

_PLACES: Final = 64
"""Coordinates offered of one dimension at most."""

# `my-jo` may be the beginning of `my-job:`, and `all-sto` that of `all-stopped`.
_PARTIAL: Final = (re.compile(rf"@?(?:{NAME}-?)?\Z"), re.compile(rf"@?(?:{WORD})?\Z"))
_DIM_VALUE: Final = re.compile(rf"(?P<dim>{WORD})\s*=\s*(?:\((?:[^()=]*,)?)?\s*(?P<digits>\d*)\Z")


@dataclass(frozen=True)
class Completion:
    """`text` may replace what stands from `start` (0-based) to the column; `detail` is for people.

    Texts that open something (`ranks(`, `tp=`, `trainer:`) end where the user goes on.
    """

    text: str
    start: int
    detail: str


def complete(text: str, column: int, world: World) -> tuple[Completion, ...]:
    """Return what may stand at `column` (0-based) of a rank set, likeliest first.

    What stands behind the column is not looked at. Mistakes in front of it give nothing.
    """
    head = text[:column]
    found: dict[str, Completion] = {}
    value = _DIM_VALUE.search(head)
    since = value.start("dim") if value else None
    for start, word, tail, detail in _values(value, world) if value else _sets(head, world):
        if _fits(head[:start] + word + tail, start if since is None else since, world):
            found.setdefault(word, Completion(word, start, detail))
    return tuple(found.values())


def _sets(head: str, world: World) -> Iterator[tuple[int, str, str, str]]:
    """Start, word, what makes it whole, and what it is."""
    starts = {match.start() for partial in _PARTIAL if (match := partial.search(head))}
    for start in sorted(starts):
        for word, tail, detail in _words(world):
            if word.startswith(head[start:]):
                yield start, word, tail, detail


def _values(value: re.Match[str], world: World) -> Iterator[tuple[int, str, str, str]]:
    size = max((dict(mesh.dims).get(value["dim"], 0) for mesh in world.meshes.values()), default=0)
    for place in map(str, range(min(size, _PLACES))):
        if place.startswith(value["digits"]):
            yield value.start("digits"), place, "", f"{value['dim']} of {size}"


def _words(world: World) -> Iterator[tuple[str, str, str]]:
    for mesh in world.meshes.values():
        for name, size in mesh.dims:
            yield f"{name}=", "0", f"dimension of {size}"
    yield "all", "", "every rank"
    yield "ranks(", ")", "ranks by number, slice or dimension"
    for state in STATES:
        yield state, "", f"ranks that are {state} now"
    for name in world.names:
        yield f"@{name}", "", "named set"
    for group, ranks in world.numbers.items():
        detail = f"group of {len(ranks)}"
        yield f"{group}:", "all", detail
        yield f"{group}.ranks(", ")", detail


def _fits(whole: str, since: int, world: World) -> bool:
    """Whether this reads as a rank set; mistakes of meaning before `since` are not its fault."""
    whole += ")" * (whole.count("(") - whole.count(")"))
    try:
        ranks = parse(whole)
    except RankSetError:
        return False
    try:
        ranks.select(world, strict=False)
    except RankSetError as error:
        return error.column < since
    return True
