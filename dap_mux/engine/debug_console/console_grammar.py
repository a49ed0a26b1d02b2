"""Tells our commands in a debug console from Python.

A text that Python can read is Python's, whatever it begins with: `cast(x)`, `attach = 3` and
`ranks(0) - loss` are the user's own. So are a bare `list` and every name that is no command
of ours.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dap_mux.pure.rank_sets import STATES, split_leading, split_prefix, with_group
from dap_mux.pure.rank_sets.tokens import NAME
from dap_mux.pure.remote.python_syntax import MAX_PARSED_CHARS, is_program

CONSOLE: Final = "repl"
BARE: Final = ("cast", "attach")
"""Commands that need no percent sign in a debug console."""

_PERCENT: Final = re.compile(r"%\s*(?P<name>[^\W\d]\w*)?\s*(?P<rest>.*)", re.DOTALL)
_BARE: Final = re.compile(rf"(?P<name>{'|'.join(BARE)})(?:\s+(?P<rest>.*))?", re.DOTALL)
_HEAD: Final = re.compile(
    rf"(?:{NAME}\s*(?:\.\s*|\s))?ranks\s*\(|@{NAME}\s*\S|(?:{'|'.join(('all', *STATES))})\s+\S"
)


class Call(NamedTuple):
    """A command of ours, and the text behind its name."""

    name: str
    rest: str


class Asked(NamedTuple):
    """An expression for a set of ranks."""

    ranks: str
    expression: str


def read(text: str, context: str) -> Call | Asked | None:
    """Return what a text to evaluate means to us, None where it is Python's.

    Raises `RankSetError` where it begins as a rank set, and is none.
    """
    text = text.strip()
    if context == CONSOLE and text.startswith("%"):
        return _call(_PERCENT.fullmatch(text))
    bare = _BARE.fullmatch(text) if context == CONSOLE else None
    head = None if bare else _HEAD.match(text, 0, MAX_PARSED_CHARS)
    if not (bare or head) or is_program(text):
        return None
    return _call(bare) if bare else _asked(text)


def _call(match: re.Match[str] | None) -> Call | None:
    return match and Call(match["name"] or "", (match["rest"] or "").strip())


def _asked(text: str) -> Asked:
    """`ranks(0:4) loss`; with a colon, as in breakpoints, where Python would see a call."""
    text = with_group(text)
    prefix = split_prefix(text)
    if prefix.ranks is not None and prefix.rest:
        return Asked(str(prefix.ranks), prefix.rest)
    return Asked(*split_leading(text))
