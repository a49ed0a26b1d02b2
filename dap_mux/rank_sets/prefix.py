"""Ranks in breakpoints: the rank set at the head of a condition, and `$rank` within it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dap_mux.rank_sets.algebra import RankSet
from dap_mux.rank_sets.errors import Place, RankSetError
from dap_mux.rank_sets.grammar import parse_within
from dap_mux.rank_sets.tokens import NAME

_HEAD = re.compile(rf"\s*(?P<set>@{NAME}|(?:{NAME}\s*\.\s*)?ranks\s*(?P<opening>\())")
_TAIL = re.compile(r"\s*(?:(?P<barrier>barrier\b)\s*)?(?:(?P<colon>:)(?!=)\s*|\Z)")
_PIECE = re.compile(
    # A bracket or a string; one that never closes reaches to the end.
    r"""[()\[\]{}]
    | \'\'\'.*?(?:\'\'\'|\Z) | \"\"\".*?(?:\"\"\"|\Z)
    | '(?:\\.|[^'\\])*(?:'|\\?\Z) | "(?:\\.|[^"\\])*(?:"|\\?\Z)""",
    re.DOTALL | re.VERBOSE,
)
_VARIABLE = re.compile(r"\$(\w+)")


@dataclass(frozen=True)
class Prefix:
    """A condition, hit condition or log message, taken apart.

    `ranks` is None where the text names none, which means every rank. `rest` goes to the
    ranks as it is: the text after the colon and its spaces, or all of a text without prefix.
    """

    ranks: RankSet | None
    barrier: bool
    rest: str


def split_prefix(text: str) -> Prefix:
    """Take `ranks(tp=0): loss > 3` apart, or `@slow:`, `trainer.ranks(0-3):`, `barrier`.

    Only these, and `barrier` after any of them, are prefixes, and a colon must follow
    (`barrier` may end the text); anything else is the user's own, so `loss: {loss}`
    and `ranks(x) > 3` come back whole. Raises RankSetError where what stands before the
    colon is meant as a rank set and is none.
    """
    head = _HEAD.match(text)
    end = 0 if head is None else _end(head)
    tail = _TAIL.match(text, end)
    if tail is None or not (tail["barrier"] or (head and tail["colon"])):
        return Prefix(None, barrier=False, rest=text)
    ranks = None if head is None else parse_within(text, head.start("set"), end)
    return Prefix(ranks, barrier=tail["barrier"] is not None, rest=text[tail.end() :])


def _end(head: re.Match[str]) -> int:
    """The column after the head's set, which for `ranks(` is where its parenthesis closes."""
    if head["opening"] is None:
        return head.end()
    depth = 1
    # A user's own call of something named ranks may hold strings with anything in them.
    for piece in _PIECE.finditer(head.string, head.end()):
        depth += (piece[0] in "([{") - (piece[0] in ")]}")
        if depth == 0:
            return piece.end()
    place = Place(head.string, head.start("opening"))
    raise RankSetError("this parenthesis is never closed", place)


def substitute(text: str, values: Mapping[str, object]) -> str:
    """Replace `$rank`, `$world_size`, `$host`, `$<dim>` by a rank's values.

    A name reaches as far as letters, digits and `_` go: `$dp_shard` is never `$dp`. Unknown
    names stay as they are, and what a value holds is not looked at again.
    """
    return _VARIABLE.sub(lambda found: str(values.get(found[1], found[0])), text)
