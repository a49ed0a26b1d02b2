"""Shortens the error messages of expressions that failed in a rank."""

from __future__ import annotations

import re
from typing import Final

_TITLE: Final = "Traceback (most recent call last):\n"
# A frame of a traceback: its first line, and the deeper lines that belong to it.
_OF_PYDEVD: Final = r'(?m)^  File "[^"\n]*[/\\\\]_pydevd_bundle[/\\\\][^\n]*\n(?:    [^\n]*\n)*'
_OF_THE_PROGRAM: Final = r'(?m)^  File "[^\n]*, in '


def without_debugger_frames(text: str) -> str:
    """Return a traceback without the frames of pydevd, which say nothing of the expression.

    For what is no Python, none is left: then it reads as where Python itself prints it.
    """
    if not text.startswith(_TITLE):
        return text
    kept = re.sub(_OF_PYDEVD, "", text)
    return kept if re.search(_OF_THE_PROGRAM, kept) else kept.removeprefix(_TITLE)


def in_one_line(message: str) -> str:
    """Return the end of a traceback: what was raised, and with which words."""
    lines = message.strip().splitlines()
    inside = [index for index, line in enumerate(lines) if line.startswith("  ")]
    return " ".join(lines[inside[-1] + 1 :] if inside else lines) or "failed with no error message"
