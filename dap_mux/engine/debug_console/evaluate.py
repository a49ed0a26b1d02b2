"""`evaluate`, `completions` and what depends on them: Python for one rank, or our own commands.

`console_grammar` tells the two apart. Each command is one of our requests, asked on the client's
behalf, and its answer as text: so a command can do no more than the request, and says the same.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.debug_console import console_grammar
from dap_mux.engine.debug_console.completions import Hints, hints
from dap_mux.engine.debug_console.console import Console
from dap_mux.engine.debug_console.hover import HOVER, HoverEvaluator, RankSetEvaluator
from dap_mux.engine.debug_console.merged_values import Values
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.values.inspect import Inspector
from dap_mux.engine.values.last_answers import SHOWN
from dap_mux.errors import UsageError
from dap_mux.protocol.arguments import CompletionsArguments, EvaluateArguments, ReferenceArguments
from dap_mux.protocol.exchange import Kind
from dap_mux.protocol.messages import plain, raw
from dap_mux.protocol.rank_messages import Completions
from dap_mux.protocol.validation import typed

ONE_RANK: Final = (
    "this is a value of several ranks: set it in one of them, or use cast ranks(...) !name = value"
)


class Evaluation:
    """The engine's part that hears what a user types."""

    def __init__(
        self,
        core: SessionState,
        inspector: Inspector,
        console: Console,
        values: Values,
        evaluator: RankSetEvaluator,
        hovers: HoverEvaluator,
    ) -> None:
        self._core = core
        self._inspector = inspector
        self._console = console
        self._values = values
        self._trees = values.trees
        self._evaluator = evaluator
        self._hovers = hovers

    def evaluate(self, request: ClientRequest) -> None:
        """`evaluate`: a command of ours, an expression for several ranks, or one rank's Python."""
        arguments = typed(request.arguments, EvaluateArguments)
        meant = console_grammar.read(arguments.expression, arguments.context)
        if meant is None:
            if arguments.context == console_grammar.CONSOLE and arguments.frameId is None:
                self._in_focus(request)
            if arguments.context == HOVER:
                self._hovers.evaluate(request, arguments)
            else:
                self._inspector.to_owner_or_focus(request)
        elif isinstance(meant, console_grammar.Asked):
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
        if not self._trees.owns(reference):
            self._inspector.to_owner(request)
            return
        to_clients.respond(self._core, request, {"variables": self._trees.children(reference)})

    def set_variable(self, request: ClientRequest) -> None:
        """`setVariable`: in one rank."""
        if self._trees.owns(typed(request.arguments, ReferenceArguments).variablesReference):
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
