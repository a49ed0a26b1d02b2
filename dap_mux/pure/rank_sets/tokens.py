"""The tokens of a rank set, each with its column, and the error that points at one."""

from __future__ import annotations

import re
from typing import NamedTuple

from dap_mux.pure.errors import UsageError

MAX_CHARS = 4096
"""The limit of a rank set: parsing a longer one would block the session for too long."""

_MAX_QUOTED_CHARS = 72
"""Characters of the user's text that a message quotes at most."""


class Place(NamedTuple):
    """Where something stands in the text that the user wrote: 0-based column, width >= 1."""

    text: str
    column: int
    width: int = 1


class RankSetError(UsageError):
    """A rank set that cannot be read, or that means nothing in this session.

    `message` is one line; `str()` adds the text and a caret line under `column` (0-based,
    `len(text)` where something is missing at the end).
    """

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.message = message
        self.text = place.text
        self.column = place.column
        self.width = place.width

    def __str__(self) -> str:
        return f"{self.message}\n{self._quote()}"

    def _quote(self) -> str:
        """The text and its carets, cut to a window around the column, on two lines."""
        start = (
            max(0, self.column - _MAX_QUOTED_CHARS // 2)
            if len(self.text) > _MAX_QUOTED_CHARS
            else 0
        )
        window = self.text[start : start + _MAX_QUOTED_CHARS]
        # Control characters would move the caret, or the reader's cursor.
        line = "".join(char if char.isprintable() else " " for char in window)
        carets = "^" * max(1, min(self.width, _MAX_QUOTED_CHARS // 2))
        return f"  {line}\n  {' ' * (self.column - start)}{carets}"


class UnknownDimension(RankSetError):
    """A dimension that the mesh of `group` lacks, as far as is known: the ranks may know it."""

    def __init__(self, group: str, message: str, place: Place) -> None:
        super().__init__(message, place)
        self.group = group


_MAX_DIGITS = 9
"""No job has a thousand million ranks, and arithmetic stays small."""

WORD = r"[^\W\d]\w*"
NAME = rf"{WORD}(?:-\w+){{0,15}}"  # bounded, so that matching stays linear

# The minus sign: between two numbers without spaces it makes a range: `0-3`. Anywhere
# else it is a difference: `all - 0-3`, and `5 - 3` is rank 5 without rank 3. A list binds
# tighter than any operator: `all - 0-3,7` leaves out all of `0-3,7`. Names may hold hyphens
# (`my-job:0`, `@slow-ones`), so put spaces around the minus that follows or precedes a name.
_SINGLY = rf"""(?P<symbol>[-&|~();,:.=])
    | (?P<number>[0-9]+(?![0-9]|-[0-9]))
    | (?P<run>[0-9]+-[0-9]+(?![0-9]|-[0-9]))
    | (?P<chain>[0-9]+(?:-[0-9]+)+)
    # A hyphen belongs to a name only where a name can stand, before ":" or "." and after
    # "@"; `all-stopped` is a difference.
    | (?P<name>{NAME}(?=\s*[:.]) | {WORD})
    | @(?P<at>{NAME})
    | (?P<space>\s+)"""
_PIECE = rf"[0-9]{{1,{_MAX_DIGITS}}}(?:-[0-9]{{1,{_MAX_DIGITS}}})?"
_SINGLE = re.compile(_SINGLY, re.VERBOSE)
# Long texts are long lists, so a list is one token: but for a last number that is too long, or
# belongs to a chain or to a slice.
_TOKEN = re.compile(
    rf"(?P<list>{_PIECE}(?:\s*,\s*{_PIECE})+(?!\s*:|-?[0-9])) | {_SINGLY}", re.VERBOSE
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
    """`kind` is name, at, list, run, number, end, or for a symbol the symbol itself."""

    kind: str
    text: str
    source: str
    column: int

    @property
    def place(self) -> Place:
        """Where it stands; of a list, where its first number does."""
        text = self.text.partition(",")[0].rstrip() if self.kind == "list" else self.text
        return Place(self.source, self.column, max(1, len(text) + (self.kind == "at")))


def is_name(text: str) -> bool:
    """Whether groups and named sets may be called so (letters, digits, `_`, inner `-`)."""
    return re.fullmatch(NAME, text) is not None


def tokenize(text: str, start: int, end: int) -> list[Token]:
    """The tokens of `text[start:end]`, with columns in the whole text; an `end` is last."""
    if end - start > MAX_CHARS:
        message = f"a rank set has {MAX_CHARS:,} characters at most: name parts of it, as in @slow"
        raise RankSetError(message, Place(text, start + MAX_CHARS))
    return [*_tokens(_TOKEN, text, start, end), Token("end", "", text, end)]


def singly(token: Token) -> list[Token]:
    """The numbers, ranges and commas of a list."""
    end = token.column + len(token.text)
    return _tokens(_SINGLE, token.source, token.column, end)


def _tokens(pattern: re.Pattern[str], text: str, start: int, end: int) -> list[Token]:
    found = []
    for match in pattern.finditer(text, start, end):
        column, behind = match.span()
        if column != start:
            break
        start = behind
        kind = match.lastgroup or ""
        if kind == "symbol":
            symbol = match[0]
            found.append(Token(symbol, symbol, text, column))
        elif kind != "space":
            found.append(Token(kind, match[kind], text, column))
            if kind in ("run", "number", "chain"):
                _check_number(found[-1])
    if start != end:
        raise _unexpected(Place(text, start))
    return found


def _check_number(token: Token) -> None:
    text = token.text
    if token.kind == "chain":
        first, last, *_ = text.split("-")
        hint = f"a range has two ends, and a difference needs spaces: {first}-{last} - ..."
        raise RankSetError(f"{text} is not a range: {hint}", token.place)
    if len(text) > _MAX_DIGITS and max(map(len, text.split("-"))) > _MAX_DIGITS:
        raise RankSetError("this number is too large for a rank", token.place)


def _unexpected(place: Place) -> RankSetError:
    char = place.text[place.column]
    hint = f": {_HINTS[char]}" if char in _HINTS else " in a rank set"
    return RankSetError(f"unexpected {char!r}{hint}", place)
