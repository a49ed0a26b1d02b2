"""`evaluate` and what depends on it: Python for one rank, or our own commands.

`read` tells the two apart. Each command is one of our requests, asked on the client's
behalf, and its answer as text: so a command can do no more than the request, and says the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct

from dap_mux.engine.debug_console.merged_values import HOVER, HoverEvaluator, Values
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.values.across_ranks import AcrossRanks
from dap_mux.engine.values.inspect import SHOWN, Inspector, frame_of
from dap_mux.pure.protocol.arguments import EvaluateArguments, ReferenceArguments
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import plain, raw
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import STATES, split_leading, split_prefix, with_group
from dap_mux.pure.rank_sets.tokens import NAME
from dap_mux.pure.remote import MAX_PARSED_CHARS, is_program

# Tells our commands in a debug console from Python.
#
# A text that Python can read is Python's, whatever it begins with: `cast(x)`, `attach = 3` and
# `ranks(0) - loss` are the user's own. So are a bare `list` and every name that is no command
# of ours.

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


ONE_RANK: Final = (
    "this is a value of several ranks: set it in one of them, or use cast ranks(...) !name = value"
)


class Evaluation(Struct, eq=False):
    """The engine's part that hears what a user types."""

    _core: SessionState
    _inspector: Inspector
    _call: Callable[[ClientRequest, Call], None]  # carries out a command (`Console.call`)
    _values: Values
    _hovers: HoverEvaluator
    across_ranks: AcrossRanks

    def evaluate(self, request: ClientRequest) -> None:
        """`evaluate`: a command of ours, an expression for several ranks, or one rank's Python."""
        arguments = typed(request.arguments, EvaluateArguments)
        meant = read(arguments.expression, arguments.context)
        if meant is None:
            if arguments.context == CONSOLE and arguments.frameId is None:
                self._in_focus(request)
            if arguments.context == HOVER:
                self._hovers.evaluate(request, arguments)
            else:
                self._inspector.to_owner_or_focus(request)
        elif isinstance(meant, Asked):
            depth = self._depth(arguments)
            self._values.evaluate(request, meant.ranks, meant.expression, depth=depth)
        else:
            self._call(request, meant)

    def _in_focus(self, request: ClientRequest) -> None:
        """A console that names no frame means the one in focus, where that rank is stopped."""
        rank = focused(self._core, request.client)
        frame = rank.stop.frame_id if rank and rank.stop else None
        if rank is not None and frame is not None:
            handle = self._core.handles.mint(rank.id, Kind.FRAME, frame)
            request.arguments = raw({**plain(request.arguments), "frameId": handle})

    def _depth(self, arguments: EvaluateArguments) -> int | None:
        """How far up the stack the frame is that the user looks at; None for the innermost.

        An editor may only show this, of a frame whose rank has run on since.
        """
        handles, frame = self._core.handles, arguments.frameId
        if frame is None or (
            arguments.context in SHOWN and handles.resumed(Kind.FRAME, frame) is not None
        ):
            return None
        handles.resolve(Kind.FRAME, frame)  # raises StaleHandle
        shown = frame_of(self._core, frame)
        return (shown.depth or None) if shown else None

    def variables(self, request: ClientRequest) -> None:
        """`variables`: of several ranks' value from here, of one rank's from the rank."""
        reference = typed(request.arguments, ReferenceArguments).variablesReference
        if not self._values.trees.owns(reference):
            self.across_ranks.variables(request)
            return
        to_clients.respond(
            self._core, request, {"variables": self._values.trees.children(reference)}
        )

    def set_variable(self, request: ClientRequest) -> None:
        """`setVariable`: in one rank."""
        if self._values.trees.owns(typed(request.arguments, ReferenceArguments).variablesReference):
            to_clients.refuse(self._core, request, ONE_RANK)
            return
        self.across_ranks.plain_value(request)
        self._inspector.to_owner(request)
