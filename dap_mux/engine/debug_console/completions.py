"""Completions in a debug console: our commands, rank sets, then Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dap_mux.engine.debug_console import console_grammar
from dap_mux.engine.debug_console.console import COMMANDS, PYTHON_TOO, RANKS
from dap_mux.engine.remote.python_syntax import MAX_PARSED_CHARS
from dap_mux.engine.state.bodies import Body
from dap_mux.errors import UsageError
from dap_mux.rank_sets import World, complete, parse, split_leading
from dap_mux.rank_sets.tokens import NAME

_PERCENT: Final = re.compile(r"\s*(?P<word>%\s*(?P<name>\w*))\Z")
_BEHIND: Final = re.compile(
    rf"\s*(?:%\s*(?P<percent>\w+)|(?P<bare>{'|'.join(console_grammar.BARE)}))\s+(?P<rest>.*)\Z",
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
    bare = (*(f"{name} " for name in console_grammar.BARE), "ranks(")
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
