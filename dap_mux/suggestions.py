"""Suggest the known name that a mistyped one most likely stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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
