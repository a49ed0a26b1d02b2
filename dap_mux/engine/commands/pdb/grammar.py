"""pdb's commands, as `cast` takes them: their spellings, and what is told of those it lacks.

Anything that begins with none of them is Python: an expression, or a statement behind `!`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dap_mux.errors import UsageError

_SPELLINGS: Final = """
    n next, s step, r return, c cont continue, unt until, j jump,
    w where bt, u up, d down, l list, ll longlist, a args,
    p, pp, whatis, source, display, undisplay,
    b break, tbreak, cl clear, condition, ignore, enable, disable,
    h help, pause"""
SPELLINGS: Final = [entry.split() for entry in _SPELLINGS.split(",")]
"""Each command's spellings, the shortest first: that one is its name in here.

`pause` is ours: pdb has no rank that runs.
"""
COMMANDS: Final = {spelling: names[0] for names in SPELLINGS for spelling in names}

INSTEAD: Final = {
    "interact": "attach to the rank (`attach RANK`), or use an editor's debug console",
    "commands": "use `display EXPRESSION`, or a logpoint in an editor",
    "debug": "use `s`, or set a breakpoint in the called function",
    "alias": "type it out; to name a set of ranks, use the request `groups`",
    "unalias": "aliases are not supported",
    "retval": 'attach with "showReturnValue": true and look at the locals',
    "exceptions": "`p __exception__` shows the one that a rank has stopped at",
    "run": "use the request `restart`, where the session owns the job",
    "q": "use the console's `quit`, or the request `release` to let ranks go",
}
INSTEAD_OF: Final = {
    **{name: name for name in INSTEAD}, "rv": "retval", "restart": "run",
    "quit": "q", "exit": "q", "EOF": "q",
}  # fmt: skip

_COMMAND: Final = re.compile(r"(?P<command>[A-Za-z]+)(?:\s+(?P<argument>.*))?\Z", re.DOTALL)
_ASSIGNED: Final = re.compile(r"([-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)|:=")


class Parsed(NamedTuple):
    """A command taken apart; `command` is '' for Python."""

    command: str
    argument: str


def read(text: str) -> Parsed:
    """Find the command at the head of a text. Raises `UsageError` for what cannot be had."""
    text = text.strip()
    if not text:
        raise UsageError("cast needs a command: a pdb command such as `n`, or an expression")
    if text.startswith("!"):
        return Parsed("", text[1:].strip())
    match = _COMMAND.match(text)
    argument = (match["argument"] or "").strip() if match else ""
    if match is None or _ASSIGNED.match(argument):
        return Parsed("", text)  # `n = 3` is Python, and so is `c.clear()`
    command = match["command"]
    if command in INSTEAD_OF:
        name = INSTEAD_OF[command]
        raise UsageError(f"{command!r} cannot be cast: {INSTEAD[name]}")
    return Parsed(COMMANDS[command], argument) if command in COMMANDS else Parsed("", text)


def help_text() -> str:
    """Return the commands and their long names, a line each."""
    return "\n".join(" ".join(names) for names in SPELLINGS) + "\nanything else is Python"
