"""Text for users: what ranks say is escaped, and a mistyped name gets a suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final


def printable(text: str, keep: str = "\n\t") -> str:
    """Show control characters as escapes, all but `keep`: a rank's words steer no terminal.

    Those that only look harmless (right-to-left marks, zero-width ones) are shown too.
    """
    if text.isprintable():  # nearly always, and a table has many cells
        return text
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode()
        for one in text
    )


def one_line(text: str) -> str:
    """The same on one line: a newline in a rank's words must not look like a line of ours."""
    return printable(text, keep="")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, columns as wide as they must be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


# The known name that a mistyped one most likely stands for.

_MAX_COMPARED: Final = 72  # characters; comparing takes quadratic time


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `word`, None where none is similar."""
    import difflib  # noqa: PLC0415  (only after a mistake)

    close = difflib.get_close_matches(word, known, n=1) if len(word) < _MAX_COMPARED else []
    return close[0] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion to end an error message with, or else the list of known names."""
    names = sorted(known)
    if likely := closest(word, names):
        return f"did you mean {likely}?"
    if not names:
        return "there is none"
    return f"there {'are' if len(names) > 1 else 'is'} {', '.join(names)}"
