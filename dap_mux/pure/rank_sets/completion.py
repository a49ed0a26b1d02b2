"""Completions at a column of a rank set, for consoles, editors and the language server.

The parser decides: a candidate is offered if the text with it, completed, parses and selects
something in this world. So completion never disagrees with the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dap_mux.pure.rank_sets.grammar import parse
from dap_mux.pure.rank_sets.tokens import NAME, WORD, RankSetError
from dap_mux.pure.rank_sets.world import STATES, World

_MAX_CHARS: Final = 256
"""A longer text is not completed, because each kind of candidate is parsed with all of it."""

_MAX_COORDINATES: Final = 64
"""Coordinates offered of one dimension at most."""

# `my-jo` may be the beginning of `my-job:`, and `all-sto` that of `all-stopped`.
_PARTIAL: Final = (re.compile(rf"@?(?:{NAME}-?)?\Z"), re.compile(rf"@?(?:{WORD})?\Z"))
_DIM_VALUE: Final = re.compile(rf"(?P<dim>{WORD})\s*=\s*(?:\((?:[^()=]*,)?)?\s*(?P<digits>\d*)\Z")


class Completion(NamedTuple):
    """`text` may replace what stands from `start` (0-based) to the column; `detail` is for people.

    Texts that open something (`ranks(`, `tp=`, `trainer:`) end where the user goes on.
    """

    text: str
    start: int
    detail: str


def complete(text: str, column: int, world: World) -> tuple[Completion, ...]:
    """Return the completions at `column` (0-based) of a rank set, likeliest first.

    Text behind the column is ignored. Errors in front of it, or more than 256 characters, give
    none.
    """
    head = text[:column]
    if len(head) > _MAX_CHARS:
        return ()
    found: dict[str, Completion] = {}
    fits: dict[tuple[int, str], bool] = {}
    value = _DIM_VALUE.search(head)
    since = value.start("dim") if value else None
    for start, candidate in _values(value, world) if value else _sets(head, world):
        kind = (start, candidate.kind)
        if kind not in fits:
            whole = head[:start] + candidate.text + candidate.tail
            fits[kind] = _fits(whole, start if since is None else since, world)
        if fits[kind]:
            found.setdefault(candidate.text, Completion(candidate.text, start, candidate.detail))
    return tuple(found.values())


class _Candidate(NamedTuple):
    """A possible completion. `tail` completes it; those of one `kind` fit the same places."""

    text: str
    tail: str
    detail: str
    kind: str


def _sets(head: str, world: World) -> Iterator[tuple[int, _Candidate]]:
    starts = {match.start() for partial in _PARTIAL if (match := partial.search(head))}
    for start in sorted(starts):
        for candidate in _candidates(world):
            if candidate.text.startswith(head[start:]):
                yield start, candidate


def _values(value: re.Match[str], world: World) -> Iterator[tuple[int, _Candidate]]:
    size = max((dict(mesh.dims).get(value["dim"], 0) for mesh in world.meshes.values()), default=0)
    for place in map(str, range(min(size, _MAX_COORDINATES))):
        if place.startswith(value["digits"]):
            detail = f"{value['dim']} of {size}"
            yield value.start("digits"), _Candidate(place, "", detail, "place")


def _candidates(world: World) -> Iterator[_Candidate]:
    for mesh in world.meshes.values():
        for name, size in mesh.dims:
            yield _Candidate(f"{name}=", "0", f"dimension of {size}", f"{name}=")
    yield _Candidate("all", "", "every rank", "set")
    yield _Candidate("ranks(", ")", "ranks by number, slice or dimension", "ranks")
    for state in STATES:
        yield _Candidate(state, "", f"ranks that are {state} now", "set")
    for name in world.names:
        yield _Candidate(f"@{name}", "", "named set", "name")
    for group, ranks in world.numbers.items():
        detail = f"group of {len(ranks)}"
        yield _Candidate(f"{group}:", "all", detail, "group")
        yield _Candidate(f"{group}.ranks(", ")", detail, "ranks of a group")


def _fits(whole: str, since: int, world: World) -> bool:
    """Whether this reads as a rank set; mistakes of meaning before `since` are not its fault."""
    whole += ")" * (whole.count("(") - whole.count(")"))
    try:
        ranks = parse(whole)
    except RankSetError:
        return False
    try:
        ranks.select(world, strict=False)
    except RankSetError as error:  # of a named set's own text, or in front of this word?
        return error.text != whole or error.column < since
    return True
