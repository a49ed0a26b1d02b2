"""The error of this package, with a caret under the text that it is about."""

from __future__ import annotations

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
