"""The words of a rank set, each with its column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dap_mux.rank_sets.errors import LONGEST, Place, RankSetError

_DIGITS = 9
"""No job has a thousand million ranks, and arithmetic stays small."""

WORD = r"[^\W\d]\w*"
NAME = rf"{WORD}(?:-\w+){{0,15}}"  # bounded, so that matching stays linear

_TOKEN = re.compile(
    # A hyphen belongs to a name only where a name can stand, before ":" or "." and after
    # "@"; `all-stopped` is a difference.
    rf"""(?P<space>\s+)
    | (?P<name>{NAME}(?=\s*[:.]) | {WORD})
    | @(?P<at>{NAME})
    | (?P<chain>[0-9]+(?:-[0-9]+){{2,}})
    | (?P<run>[0-9]+-[0-9]+)
    | (?P<number>[0-9]+)
    | (?P<symbol>[-&|~();,:.=])""",
    re.VERBOSE,
)

_HINTS = {
    "@": "a name follows it, as in @slow",
    "*": "for every rank write all",
    "+": "to unite sets write |",
    "!": "for all others write ~",
    "[": "ranks go in parentheses, as in ranks(0:4)",
    "{": "ranks go in parentheses, as in ranks(0,3)",
}


class Token(NamedTuple):
    """`kind` is name, at, run, number, end, or for a symbol the symbol itself."""

    kind: str
    text: str
    source: str
    column: int

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.source, self.column, max(1, len(self.text) + (self.kind == "at")))


def is_name(text: str) -> bool:
    """Whether groups and named sets may be called so (letters, digits, `_`, inner `-`)."""
    return re.fullmatch(NAME, text) is not None


def tokenize(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of `text[start:end]`, with columns in the whole text; an `end` is last."""
    if end - start > LONGEST:
        message = f"a rank set has {LONGEST:,} characters at most: name parts of it, as in @slow"
        raise RankSetError(message, Place(text, start + LONGEST))
    while start < end:
        match = _TOKEN.match(text, start, end)
        if match is None:
            raise _unexpected(Place(text, start))
        if match.lastgroup != "space":
            yield _token(match)
        start = match.end()
    yield Token("end", "", text, end)


def _token(match: re.Match[str]) -> Token:
    group = match.lastgroup or ""
    word = match[group]
    token = Token(word if group == "symbol" else group, word, match.string, match.start())
    if group == "chain":
        first, last, *_ = word.split("-")
        hint = f"a range has two ends, and a difference spaces: {first}-{last} - ..."
        raise RankSetError(f"{word} is no range: {hint}", token.place)
    digits = len(word) > _DIGITS and group in ("number", "run")
    if digits and max(map(len, word.split("-"))) > _DIGITS:
        raise RankSetError("this number is too large for a rank", token.place)
    return token


def _unexpected(place: Place) -> RankSetError:
    char = place.text[place.column]
    hint = f": {_HINTS[char]}" if char in _HINTS else " in a rank set"
    return RankSetError(f"unexpected {char!r}{hint}", place)
