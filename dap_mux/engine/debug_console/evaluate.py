"""`evaluate`, `completions` and what depends on them: Python for one rank, or our own commands.

`console` tells the two apart. Each command is one of our requests, asked on the client's
behalf, and its answer as text: so a command can do no more than the request, and says the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from dap_mux.engine.debug_console import console
from dap_mux.engine.debug_console.console import COMMANDS, PYTHON_TOO, RANKS, Console
from dap_mux.engine.debug_console.merged_values import (
    HOVER,
    HoverEvaluator,
    RankSetEvaluator,
    Values,
)
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.values.inspect import Inspector
from dap_mux.engine.values.replies import SHOWN
from dap_mux.pure.errors import UsageError
from dap_mux.pure.protocol.arguments import (
    CompletionsArguments,
    EvaluateArguments,
    ReferenceArguments,
)
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import Body, plain, raw
from dap_mux.pure.protocol.rank_messages import Completions
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import World, complete, parse, split_leading
from dap_mux.pure.rank_sets.tokens import NAME
from dap_mux.pure.remote import MAX_PARSED_CHARS

# Completions in a debug console: our commands, rank sets, then Python.

_PERCENT: Final = re.compile(r"\s*(?P<word>%\s*(?P<name>\w*))\Z")
_BEHIND: Final = re.compile(
    rf"\s*(?:%\s*(?P<percent>\w+)|(?P<bare>{'|'.join(console.BARE)}))\s+(?P<rest>.*)\Z",
    re.DOTALL,
)
_RANKS: Final = re.compile(rf"\s*(?P<rest>(?:(?:{NAME}\s*\.\s*)?ranks\s*\(|@).*)\Z", re.DOTALL)


class Hints(NamedTuple):
    """`targets`: DAP's `CompletionItem`s. `python`: where an expression begins for some ranks.

    `ranks` are those ranks, as they were typed; None where all of the text is Python's.
    """

    targets: list[Body]
    python: int | None = None
    ranks: str | None = None


def hints(head: str, world: World) -> Hints:
    """Return what may stand at the end of `head`, a debug console's text up to the cursor."""
    if len(head) > MAX_PARSED_CHARS:
        return Hints([], python=0)  # longer than any command of ours
    word = _PERCENT.fullmatch(head)
    if word:
        names = (f"%{name}" for name in COMMANDS if name.startswith(word["name"]))
        return Hints([_word(name, word.start("word"), len(word["word"])) for name in names])
    behind = _BEHIND.fullmatch(head)
    if behind:
        known = COMMANDS.get(behind["percent"] or behind["bare"])
        return _behind(behind["rest"], behind.start("rest"), known.takes if known else (), world)
    ranks = _RANKS.fullmatch(head)
    if ranks:
        return _behind(ranks["rest"], ranks.start("rest"), (RANKS, PYTHON_TOO), world)
    bare = (*(f"{name} " for name in console.BARE), "ranks(")
    return Hints(list(_words(bare, head, 0)) if head else [], python=0)


def _behind(rest: str, start: int, takes: tuple[str, ...], world: World) -> Hints:
    targets = list(_words((one for one in takes if one.islower()), rest, start))
    if RANKS in takes:
        targets += [
            _target(one.text, start + one.start, len(rest) - one.start, one.detail)
            for one in complete(rest, len(rest), world)
        ]
    ended = _ended(rest) if PYTHON_TOO in takes else None
    if ended is None:
        return Hints(targets)
    ranks, expression = ended
    return Hints(targets, start + len(rest) - len(expression), ranks)


def _ended(rest: str) -> tuple[str, str] | None:
    """Return the rank set and the beginning of the expression behind it, if it has come to that."""
    try:
        if rest.endswith(" "):
            parse(rest)
            return rest.strip(), ""
        return split_leading(rest)
    except UsageError:
        return None


def _words(known: Iterable[str], typed: str, start: int) -> Iterator[Body]:
    return (_word(word, start, len(typed)) for word in known if word.startswith(typed))


def _word(word: str, start: int, length: int) -> Body:
    ours = COMMANDS.get(word.strip("% "))
    return _target(word, start, length, ours.about if ours else "")


def _target(text: str, start: int, length: int, detail: str) -> Body:
    """One `CompletionItem`; `start` counts from 0, as debugpy's does."""
    made: Body = {"label": text, "start": start, "length": length, "type": "keyword"}
    return {**made, **({"detail": detail} if detail else {})}


ONE_RANK: Final = (
    "this is a value of several ranks: set it in one of them, or use cast ranks(...) !name = value"
)


class Evaluation(Struct, eq=False):
    """The engine's part that hears what a user types."""

    _core: SessionState
    _inspector: Inspector
    _console: Console
    _values: Values
    _evaluator: RankSetEvaluator
    _hovers: HoverEvaluator

    def evaluate(self, request: ClientRequest) -> None:
        """`evaluate`: a command of ours, an expression for several ranks, or one rank's Python."""
        arguments = typed(request.arguments, EvaluateArguments)
        meant = console.read(arguments.expression, arguments.context)
        if meant is None:
            if arguments.context == console.CONSOLE and arguments.frameId is None:
                self._in_focus(request)
            if arguments.context == HOVER:
                self._hovers.evaluate(request, arguments)
            else:
                self._inspector.to_owner_or_focus(request)
        elif isinstance(meant, console.Asked):
            depth = self._depth(arguments)
            self._evaluator.evaluate(request, meant.ranks, meant.expression, depth=depth)
        else:
            self._console.call(request, meant)

    def _in_focus(self, request: ClientRequest) -> None:
        """A console that names no frame means the one in focus, where that rank is stopped."""
        rank = focused(self._core, request.client)
        frame = rank.stop.frame_id if rank and rank.stop else None
        if rank is not None and frame is not None:
            handle = self._core.handles.mint(rank.id, Kind.FRAME, frame)
            request.arguments = raw({**plain(request.arguments), "frameId": handle})

    def _shows_what_was(self, arguments: EvaluateArguments) -> bool:
        """Whether an editor only shows this, of a frame whose rank has run on since."""
        frame = arguments.frameId
        resumed = frame is not None and self._core.handles.resumed(Kind.FRAME, frame) is not None
        return resumed and arguments.context in SHOWN

    def _depth(self, arguments: EvaluateArguments) -> int | None:
        """How far up the stack the frame is that the user looks at; None for the innermost."""
        frame = arguments.frameId
        if frame is None or self._shows_what_was(arguments):
            return None
        owner, upstream_id = self._core.handles.resolve(Kind.FRAME, frame)
        stop = self._core.ranks[owner].stop
        known = stop is not None and upstream_id in stop.frame_ids
        return (stop.frame_ids.index(upstream_id) or None) if stop and known else None

    def variables(self, request: ClientRequest) -> None:
        """`variables`: of several ranks' value from here, of one rank's from the rank."""
        reference = typed(request.arguments, ReferenceArguments).variablesReference
        if not self._values.trees.owns(reference):
            self._inspector.to_owner(request)
            return
        to_clients.respond(
            self._core, request, {"variables": self._values.trees.children(reference)}
        )

    def set_variable(self, request: ClientRequest) -> None:
        """`setVariable`: in one rank."""
        if self._values.trees.owns(typed(request.arguments, ReferenceArguments).variablesReference):
            to_clients.refuse(self._core, request, ONE_RANK)
            return
        self._inspector.to_owner(request)

    # Completions

    def completions(self, request: ClientRequest) -> None:
        """`completions`: our commands and rank sets, and Python of the rank that it is for."""
        arguments = typed(request.arguments, CompletionsArguments)
        head = arguments.text[: max(0, arguments.column - 1)]
        several = "\n" in arguments.text
        found = Hints([], python=0) if several else hints(head, self._core.world())
        if found.python is None:
            to_clients.respond(self._core, request, {"targets": found.targets})
        elif found.ranks is None:
            self._python(request, found.targets)
        else:
            self._of_ranks(request, head, found)

    def _python(self, request: ClientRequest, ours: list[Body]) -> None:
        if not ours:
            self._inspector.to_owner_or_focus(request)
            return

        def answered(body: Body, _: str) -> None:
            targets = [*ours, *body.get("targets", [])]
            to_clients.respond(self._core, request, {"targets": targets})

        inner = ClientRequest(
            request.client, request.seq, request.command, request.arguments, reply=answered
        )
        self._inspector.to_owner_or_focus(inner)

    def _of_ranks(self, request: ClientRequest, head: str, found: Hints) -> None:
        """An expression for several ranks: the first that stands still knows the names."""
        assert found.python is not None
        start = found.python
        rank = next((one for one in self._stopped(found.ranks or "")), None)
        if rank is None or rank.stop is None or rank.stop.frame_id is None:
            to_clients.respond(self._core, request, {"targets": found.targets})
            return

        def answered(said: Completions | None, _: Reply) -> None:
            of_rank = (said.targets if said else None) or []
            targets = [*found.targets, *(_moved(one, start) for one in of_rank)]
            to_clients.respond(self._core, request, {"targets": targets})

        text = head[start:]
        arguments = {"text": text, "column": len(text) + 1, "frameId": rank.stop.frame_id}
        to_ranks.ask_for(self._core, rank, "completions", arguments, Completions, answered)

    def _stopped(self, ranks: str) -> list[Rank]:
        try:
            return [rank for rank in self._values.ranks_of(ranks) if rank.stop]
        except UsageError:
            return []


def _moved(target: Body, by: int) -> Body:
    """What a rank said of the end of a text, as it is in the whole text."""
    start = target.get("start", 0)
    return {**target, "start": start + by if isinstance(start, int) else by}
