"""pdb's commands that look: values, sources, arguments, the stack; and plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.pdb.command import (
    Invocation,
    Run,
    help_text,
    selected,
    stack,
    tell_places,
)
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.values.fan_out import Text
from dap_mux.engine.values.replies import Answer, Answers
from dap_mux.pure.errors import UsageError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.remote import MAX_PARSED_CHARS, is_expression

CONTEXT_LINES: Final = 5  # lines before and after the current one, as pdb's `l`
LISTED_LINES: Final = 11  # lines, as pdb's `l`
NEEDS_FRAME: Final = "is running: {!r} needs a stopped rank"
STATEMENT: Final = "is running: a statement needs a stopped rank, an expression does not"


class ValueCommands(Struct, eq=False):
    """Commands that change nothing but which frame is selected."""

    _displays: Displays

    @property
    def commands(self) -> Mapping[str, Run]:
        """Return the handler of each command."""
        return {
            "": self.python,
            "p": self._print,
            "pp": self._of_value,
            "whatis": self._of_value,
            "source": self._of_value,
            "a": self._arguments,
            "l": self._list,
            "ll": self._long_list,
            "w": self._where,
            "u": partial(self._move, 1),
            "d": partial(self._move, -1),
            "display": self._display,
            "undisplay": self._undisplay,
            "h": self._help,
        }

    # Values

    def python(self, invocation: Invocation) -> None:
        """An expression; or a statement, which stopped ranks run in their frame."""
        long = len(invocation.argument) > MAX_PARSED_CHARS  # then the rank says whether it is one
        only = "" if long or is_expression(invocation.argument) else STATEMENT
        self._ask(invocation, invocation.argument, stopped_only=only)

    def _print(self, invocation: Invocation) -> None:
        self._ask(invocation, _needed(invocation))

    def _of_value(self, invocation: Invocation) -> None:
        text = invocation.view(invocation.command, f"({_needed(invocation)}\n)")
        self._ask_frame(invocation, text)

    def _arguments(self, invocation: Invocation) -> None:
        self._ask_frame(invocation, invocation.view("arguments"))

    def _ask(self, invocation: Invocation, text: str, *, stopped_only: str = "") -> None:
        ranks, then, limit = invocation.ranks, invocation.then, invocation.timeout
        invocation.fan_out.evaluate(ranks, text, then, limit, stopped_only=stopped_only)

    def _ask_frame(self, invocation: Invocation, text: Text) -> None:
        only = NEEDS_FRAME.format(invocation.command)
        ranks, then, limit = invocation.ranks, partial(_untyped, invocation), invocation.timeout
        invocation.fan_out.evaluate(ranks, text, then, limit, raw=True, stopped_only=only)

    # Source

    def _list(self, invocation: Invocation) -> None:
        first, last = _range(invocation.argument)

        def text(rank: Rank) -> str:
            line = _line(rank)
            start = first or max(line - CONTEXT_LINES, 1)
            end = last or start + LISTED_LINES - 1
            end = start + end if end < start else end  # a count, as in pdb
            return invocation.view("list_lines", start, end, line)

        self._ask_frame(invocation, text)

    def _long_list(self, invocation: Invocation) -> None:
        self._ask_frame(invocation, lambda rank: invocation.view("long_list", _line(rank)))

    # The stack

    def _where(self, invocation: Invocation) -> None:
        collector = invocation.collector()
        for rank in invocation.stopped(collector):
            assert rank.stop is not None
            collector.answer(rank.rank_id, Answer(stack(rank.stop)))

    def _move(self, direction: int, invocation: Invocation) -> None:
        """`u` goes to older frames, `d` to newer ones; a stop forgets it when the rank runs."""
        count = _count(invocation) * direction
        collector = invocation.collector()
        moved = []
        for rank in invocation.stopped(collector):
            assert rank.stop is not None
            last = len(rank.stop.frames or ()) - 1
            index = max(0, min(rank.stop.selected + count, last))
            if index == rank.stop.selected:
                collector.fail(rank.rank_id, "oldest frame" if direction > 0 else "newest frame")
            else:
                rank.stop.selected = index
                moved.append(rank)
        tell_places(invocation, collector, moved)

    # Displays

    def _display(self, invocation: Invocation) -> None:
        if invocation.argument:
            only = NEEDS_FRAME.format(invocation.command)
            then = partial(self._displays.add, invocation)
            ranks, text, limit = invocation.ranks, invocation.argument, invocation.timeout
            invocation.fan_out.evaluate(ranks, text, then, limit, stopped_only=only)
            return
        invocation.answer(lambda rank: self._displays.listed(invocation.client, rank.rank_id))

    def _undisplay(self, invocation: Invocation) -> None:
        collector = invocation.collector()
        for rank in invocation.ranks:
            left = self._displays.remove(invocation.client, rank.rank_id, invocation.argument)
            if left is None:
                collector.fail(rank.rank_id, f"{invocation.argument!r} is not displayed")
            else:
                collector.answer(rank.rank_id, Answer(left))

    def _help(self, invocation: Invocation) -> None:
        invocation.answer(lambda _: help_text())


MAX_DISPLAYS: Final = 100  # of one client in one rank


class Displays:
    """What `display` shows after each step of a rank, client by client, with the last value."""

    def __init__(self) -> None:
        self._shown: WeakKeyDictionary[Client, dict[RankId, dict[str, str]]] = WeakKeyDictionary()

    def add(self, invocation: Invocation, answers: Answers) -> None:
        """Show this from now on in these ranks, of which these are the first values."""
        of_client = self._shown.setdefault(invocation.client, {})
        if any(len(of_client.get(rank.rank_id, ())) >= MAX_DISPLAYS for rank in invocation.ranks):
            raise UsageError(f"there are already {MAX_DISPLAYS} displays: undisplay one first")
        for rank in invocation.ranks:
            answer = answers.values.get(rank.rank_id)
            of_client.setdefault(rank.rank_id, {})[invocation.argument] = (
                answer.value if answer else ""
            )
        invocation.then(answers)

    def remove(self, client: Client, rank: RankId, expression: str) -> str | None:
        """Forget one, or all for ''; return what is left, None where there was no such one."""
        shown = self._shown.get(client, {}).get(rank, {})
        if expression and expression not in shown:
            return None
        for known in [expression] if expression else list(shown):
            del shown[known]
        return self.listed(client, rank)

    def listed(self, client: Client, rank: RankId) -> str:
        """Return what is shown, a line each."""
        shown = self._shown.get(client, {}).get(rank, {})
        return "\n".join(f"display {name}: {value}" for name, value in shown.items())

    def look(
        self,
        invocation: Invocation,
        ranks: list[Rank],
        timeout: float,
        then: Callable[[dict[RankId, str]], None],
    ) -> None:
        """Evaluate all that is shown in these ranks; give `then` what has changed, as text."""
        of_client = self._shown.get(invocation.client, {})
        texts = grouped((text, rank) for rank in ranks for text in of_client.get(rank.rank_id, ()))
        lines: dict[RankId, list[str]] = {}

        def done(_: frozenset[str]) -> None:
            then({id: "\n".join(filter(None, changed)) for id, changed in lines.items()})

        join = Join(invocation.core, texts, done)

        def looked(text: str, answers: Answers) -> None:
            for id, answer in answers.values.items():
                lines.setdefault(id, []).append(_change(of_client[id], text, answer.value))
            join.arrive(text)

        for text, members in texts.items():
            invocation.fan_out.evaluate(members, text, partial(looked, text), timeout)


def _change(shown: dict[str, str], text: str, value: str) -> str:
    old = shown.get(text, "")
    if text not in shown or old == value:
        return ""
    shown[text] = value
    return f"display {text}: {value}" + (f"  [old: {old}]" if old else "")


def _untyped(invocation: Invocation, answers: Answers) -> None:
    """The result is no value of the program, so its type means nothing."""
    values = {id: Answer(answer.value) for id, answer in answers.values.items()}
    invocation.then(Answers(values, answers.errors, answers.missing, answers.in_main))


def _needed(invocation: Invocation) -> str:
    if not invocation.argument:
        raise UsageError(f"{invocation.command!r} needs an expression")
    return invocation.argument


def _line(rank: Rank) -> int:
    frame = selected(rank)
    return frame.line if frame else 1


def _count(invocation: Invocation) -> int:
    if invocation.argument and not invocation.argument.isdecimal():
        raise UsageError(
            f"{invocation.command!r} takes a number of frames, not {invocation.argument!r}"
        )
    return int(invocation.argument or 1)


def _range(argument: str) -> tuple[int, int]:
    """Return the first and last line that `l` names, 0 for what it leaves out."""
    if argument in ("", "."):
        return 0, 0
    parts = [part.strip() for part in argument.split(",")]
    if len(parts) > 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"'l' takes FIRST, LAST or nothing, not {argument!r}")
    first, last = int(parts[0]), int(parts[-1])
    if len(parts) == 1:
        first = max(first - CONTEXT_LINES, 1)
        return first, first + LISTED_LINES - 1
    return first, last
