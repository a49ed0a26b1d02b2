"""`completions` in a debug console: our commands, rank sets, then Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from dap_mux.engine.debug_console.console import COMMANDS, PYTHON_TOO, RANKS
from dap_mux.engine.debug_console.evaluate import BARE
from dap_mux.engine.debug_console.merged_values import Values
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.values.inspect import Inspector
from dap_mux.pure.errors import UsageError
from dap_mux.pure.protocol.arguments import CompletionsArguments
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import Completions
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import World, complete, parse, split_leading
from dap_mux.pure.rank_sets.tokens import NAME
from dap_mux.pure.remote import MAX_PARSED_CHARS

_PERCENT: Final = re.compile(r"\s*(?P<word>%\s*(?P<name>\w*))\Z")
_BEHIND: Final = re.compile(
    rf"\s*(?:%\s*(?P<percent>\w+)|(?P<bare>{'|'.join(BARE)}))\s+(?P<rest>.*)\Z",
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
    bare = (*(f"{name} " for name in BARE), "ranks(")
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


class ConsoleCompletions(Struct, eq=False):
    """The engine's part that completes what a user types."""

    _core: SessionState
    _inspector: Inspector
    _values: Values

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

        self._inspector.to_owner_or_focus(request.inner(answered))

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
    """Return a completion of the end of a text with its place in the whole text."""
    start = target.get("start", 0)
    return {**target, "start": start + by if isinstance(start, int) else by}
