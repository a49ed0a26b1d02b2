"""The words that a line may begin with, beside the console's own, and which was meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dap_mux.frontends.console.screen import Body
from dap_mux.pure.printable import closest

MOVES: Final = frozenset("n next s step r return unt until j jump c cont continue".split())
"""pdb's words that let a rank run."""
PDB: Final = {
    "n": "run to the next line of this function",
    "s": "run to the next line, in a function that is called too",
    "r": "run until this function returns",
    "unt": "run to a later line of this function",
    "c": "continue the set to its next stop",
    "j": "go on from another line of this function",
    "u": "select the caller's frame",
    "d": "select the frame that it calls",
    "w": "show the stack",
    "l": "show the lines around the current one",
    "ll": "show the whole function",
    "p": "evaluate an expression",
    "pp": "evaluate an expression, and print it on several lines",
    "whatis": "show the type of an expression",
    "a": "show the arguments of this function",
    "display": "show an expression after each step",
    "undisplay": "no longer show it",
}
"""pdb's words, which go to the current set."""
MEANT: Final = {
    "next": "n", "step": "s", "print": "p", "finish": "r", "until": "unt", "jump": "j",
    "up": "u", "down": "d", "backtrace": "w", "where": "w", "bt": "w", "args": "a",
    "watch": "display", "ls": "ranks", "info": "ranks", "threads": "ranks", "procs": "ranks",
    "thread": "on", "switch": "on", "delete": "clear", "run": "c", "interrupt": "pause",
    "halt": "pause", "kill": "drop", "diff": "compare",
}  # fmt: skip
"""Words of other debuggers, and ours for them."""


def likely(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was likely meant, None where none is similar."""
    return MEANT.get(word) or closest(word, known)


def likely_meant(line: str, errors: Iterable[Body], known: Iterable[str]) -> str | None:
    """Return the word that a line most likely begins with, which ranks could not evaluate.

    `errors`: those of the answer to it. None where none of them is about that word; a rank may
    have ended. `known`: the console's own words.
    """
    word, _, rest = line.partition(" ")
    names = f"NameError: name {word!r} "
    if not word.isidentifier() or not any(
        str(one["message"]).startswith((names, "SyntaxError") if rest else names) for one in errors
    ):
        return None
    return likely(word, [*known, *PDB])
