"""Ranks in front of a command: `ranks(0:4) p loss`, `0-3,7 n`, Monarch's `debugee ranks(3) c`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from dap_mux.rank_sets.errors import MAX_CHARS, Place, RankSetError
from dap_mux.rank_sets.grammar import parse
from dap_mux.rank_sets.tokens import NAME
from dap_mux.rank_sets.world import STATES

_KEYWORDS = {"all", "ranks", *STATES}
_NAMED = re.compile(rf"(?P<name>{NAME})\s+(?:(?P<call>ranks\s*\()|\d)")
_PIECE = re.compile(r"(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<space>\s+)")
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
    for piece in _PIECE.finditer(text, 0, MAX_CHARS + 1):
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
