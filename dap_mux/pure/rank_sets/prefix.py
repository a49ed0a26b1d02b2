"""Ranks at the head of a text: of a condition, which may hold `$rank` too, and of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from dap_mux.pure.rank_sets.grammar import parse, parse_within
from dap_mux.pure.rank_sets.tokens import MAX_CHARS, NAME, Place, RankSetError
from dap_mux.pure.rank_sets.world import STATES, Differ, RankSet

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
