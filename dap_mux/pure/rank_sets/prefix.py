"""Rank sets in users' texts: at the head of conditions and commands, and their completion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from dap_mux.pure.rank_sets.grammar import parse, parse_within
from dap_mux.pure.rank_sets.tokens import MAX_CHARS, NAME, WORD, Place, RankSetError
from dap_mux.pure.rank_sets.world import STATES, Differ, RankSet, World

# Spaces are skipped one run at a time: a pattern that goes on behind them would try each of them.
_SPACE = re.compile(r"\s*")
_HEAD = re.compile(rf"(?:@{NAME}|(?:{NAME}\s*\.\s*)?ranks\s*(?P<opening>\())")
_BARRIER = re.compile(r"barrier\b")
_DIFFER = re.compile(r"differ\b\s*(?P<dimensions>\([^()]*\))?")
_DIMENSION = re.compile(r"[^\W\d]\w*")
_PIECE = re.compile(
    # A bracket or a string; one that never closes reaches to the end.
    r"""[()\[\]{}]
    | \'\'\'.*?(?:\'\'\'|\Z) | \"\"\".*?(?:\"\"\"|\Z)
    | '(?:\\.|[^'\\])*(?:'|\\?\Z) | "(?:\\.|[^"\\])*(?:"|\\?\Z)""",
    re.DOTALL | re.VERBOSE,
)
_VARIABLE = re.compile(r"\$(\w+)")


class Prefix(NamedTuple):
    """A condition, hit condition or log message, taken apart.

    `ranks` is None where the text names none, which means every rank. `rest` goes to the
    ranks as it is: the text after the colon and its spaces, or all of a text without prefix.
    """

    ranks: RankSet | None
    barrier: bool
    rest: str
    differ: Differ | None = None


def split_prefix(text: str) -> Prefix:
    """Take `ranks(tp=0): loss > 3` apart, or `@slow:`, `trainer.ranks(0-3):`, `barrier`.

    Only these, and `barrier` after any of them, are prefixes, and a colon must follow
    (`barrier` may end the text); anything else is the user's own, so `loss: {loss}`
    and `ranks(x) > 3` come back whole. Raises RankSetError where what stands before the
    colon is meant as a rank set and is none.
    """
    start = _behind_space(text, 0)
    head = _HEAD.match(text, start, start + MAX_CHARS)
    end = start if head is None else _end(head)
    barrier = _BARRIER.match(text, _behind_space(text, end))
    at = _behind_space(text, barrier.end() if barrier else end)
    colon = text.startswith(":", at) and not text.startswith(":=", at)
    if not (barrier and (colon or at == len(text))) and not (head and colon):
        return Prefix(None, barrier=False, rest=text)
    ranks = None if head is None else parse_within(text, start, end)
    rest = text[_behind_space(text, at + 1) :] if colon else ""
    return Prefix(ranks, barrier=barrier is not None, rest=rest)


def split_condition(text: str) -> Prefix:
    """As `split_prefix`, and `differ: loss`, `ranks(tp=0) differ(dp): loss`.

    A condition alone may compare: in a log message, `differ: {loss}` is the user's own text.
    """
    start = _behind_space(text, 0)
    head = _HEAD.match(text, start, start + MAX_CHARS)
    end = start if head is None else _end(head)
    found = _DIFFER.match(text, _behind_space(text, end), end + MAX_CHARS)
    at = _behind_space(text, found.end()) if found else 0
    if not found or not text.startswith(":", at) or text.startswith(":=", at):
        return split_prefix(text)
    ranks = None if head is None else parse_within(text, start, end)
    dimensions = _dimensions(text, *found.span("dimensions")) if found["dimensions"] else ()
    differ = Differ(dimensions)
    return Prefix(ranks, barrier=False, rest=text[_behind_space(text, at + 1) :], differ=differ)


def _dimensions(text: str, start: int, end: int) -> tuple[str, ...]:
    """What stands in the parentheses of `differ(dp, tp)`."""
    dimensions: list[str] = []
    column = start + 1
    for part in text[column : end - 1].split(","):
        if not _DIMENSION.fullmatch(part.strip()):
            place = Place(text, column, max(1, len(part)))
            raise RankSetError("expected dimensions, as in differ(dp, tp)", place)
        dimensions.append(part.strip())
        column += len(part) + 1
    return tuple(dict.fromkeys(dimensions))


def _behind_space(text: str, start: int) -> int:
    """The column of the first character from `start` on that is no space."""
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _end(head: re.Match[str]) -> int:
    """The column after the head's set, which for `ranks(` is where its parenthesis closes."""
    if head["opening"] is None:
        return head.end()
    depth = 1
    # A user's own call of something named ranks may hold strings with anything in them.
    for piece in _PIECE.finditer(head.string, head.end(), head.end() + MAX_CHARS):
        depth += (piece[0] in "([{") - (piece[0] in ")]}")
        if depth == 0:
            return piece.end()
    place = Place(head.string, head.start("opening"))
    longer = len(head.string) > head.end() + MAX_CHARS
    where = f" within {MAX_CHARS:,} characters" if longer else ""
    raise RankSetError(f"this parenthesis is never closed{where}", place)


def substitute(text: str, values: Mapping[str, object]) -> str:
    """Replace `$rank`, `$world_size`, `$host`, `$<dim>` by a rank's values.

    A name reaches as far as letters, digits and `_` go: `$dp_shard` is never `$dp`. Unknown
    names stay as they are, and what a value holds is not looked at again.
    """
    return _VARIABLE.sub(lambda found: str(values.get(found[1], found[0])), text)


# In front of a command: `ranks(0:4) p loss`, `0-3,7 n`, Monarch's `debugee ranks(3) c`

_KEYWORDS = {"all", "ranks", *STATES}
_NAMED = re.compile(rf"(?P<name>{NAME})\s+(?:(?P<call>ranks\s*\()|\d)")
_BRACKET = re.compile(r"(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<space>\s+)")
_MAX_CUTS = 40  # a set of more tokens than that should get a name of its own


def split_leading(text: str) -> tuple[str, str]:
    """Return the rank set at the head of a text and the command behind it; neither is empty.

    The set is the longest one that leaves a command: write `p -1`, for `0-3 -1 + x` is `+ x` for
    `0-3` without rank 1. Raises RankSetError where no set stands there, or nothing behind it.
    """
    text = with_group(text.strip())
    cuts = list(islice(_cuts(text), _MAX_CUTS))
    problem: RankSetError | None = None
    for cut in reversed(cuts):
        if problem is not None and cut > problem.column:
            continue  # the same token would be wrong
        problem = _problem(text[:cut])
        if problem is None:
            return text[:cut], text[cut:].strip()
    if problem is not None and problem.text == text[: cuts[0]]:
        raise problem
    parse(text[: cuts[0]] if cuts else text)  # where that is no set, this says where and why
    raise RankSetError("a command must follow the ranks", Place(text, len(text)))


def with_group(text: str) -> str:
    """Write Monarch's `debugee ranks(3)` and `debugee 13` as the grammar does, columns kept."""
    named = _NAMED.match(text, 0, MAX_CHARS)
    if named is None or named["name"] in _KEYWORDS:
        return text
    end = named.end("name")
    return text[:end] + ("." if named["call"] else ":") + text[end + 1 :]


def _cuts(text: str) -> Iterator[int]:
    """Where the ranks may end: at each space that is in no bracket."""
    depth = 0
    for piece in _BRACKET.finditer(text, 0, MAX_CHARS + 1):
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        if piece["space"] is not None and depth <= 0:
            yield piece.start()


def _problem(text: str) -> RankSetError | None:
    """Return why this is not a rank set, None if it is one."""
    try:
        parse(text)
    except RankSetError as error:
        return error
    return None


# Completions at a column of a rank set, for consoles, editors and the language server.
#
# The parser decides: a candidate is offered if the text with it, completed, parses and selects
# something in this world. So completion never disagrees with the grammar.

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
