"""What ranks say never reaches a terminal or a log raw."""

from __future__ import annotations


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
