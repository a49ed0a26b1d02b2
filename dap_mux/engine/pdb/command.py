"""One `cast` under way: its client, the ranks that it acts on, and how it is answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from dap_mux.engine.state.client import Client
from dap_mux.engine.state.rank import Frame, Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.values.fan_out import FanOutEvaluator
from dap_mux.engine.values.replies import Answer, Answers, ReplyCollector
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.remote import call

# pdb's commands, as `cast` takes them: their spellings, and what is told of those it lacks.
#
# Anything that begins with none of them is Python: an expression, or a statement behind `!`.

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
    "retval rv": 'attach with "showReturnValue": true and look at the locals',
    "exceptions": "`p __exception__` shows the one that a rank has stopped at",
    "run restart": "use the request `restart`, where the session owns the job",
    "q quit exit EOF": "use the console's `quit`, or the request `release` to let ranks go",
}
INSTEAD_OF: Final = {name: text for names, text in INSTEAD.items() for name in names.split()}

FILE_LINE: Final = re.compile(r"(?P<file>.+):\s*(?P<line>\d+)")
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
        raise UsageError(f"{command!r} cannot be cast: {INSTEAD_OF[command]}")
    return Parsed(COMMANDS[command], argument) if command in COMMANDS else Parsed("", text)


def help_text() -> str:
    """Return the commands and their long names, a line each."""
    return "\n".join(" ".join(names) for names in SPELLINGS) + "\nanything else is Python"


# Where ranks stand, as pdb says it: `> train.py(7)train()`, and the line's text behind `->`.

LINE_TIMEOUT: Final = 1.0  # s; a place without its line's text is worth telling too


def tell_places(
    invocation: Invocation,
    collector: ReplyCollector,
    ranks: Sequence[Rank],
    more: Mapping[RankId, str] | None = None,
) -> None:
    """Answer for each rank with the place of its selected frame; `more` goes below it.

    A line's text that no stop has told is asked of one rank, for all there.
    """
    groups: dict[Frame, list[Rank]] = {}
    for rank in ranks:
        frame = selected(rank)
        if frame is None:
            collector.fail(rank.rank_id, "it has run on meanwhile")
        else:
            groups.setdefault(frame, []).append(rank)
    for frame, members in groups.items():
        told = partial(_told, collector, frame, members, more or {})
        stop = members[0].stop
        if stop and stop.selected == 0 and stop.line_text is not None:
            told(stop.line_text)
            continue
        text, heard = invocation.view("line_text", frame.line), partial(_heard, told)
        invocation.fan_out.evaluate(members[:1], text, heard, LINE_TIMEOUT, raw=True)


def _heard(told: Callable[[str], None], answers: Answers) -> None:
    told(next((answer.value for answer in answers.values.values()), ""))


def _told(
    collector: ReplyCollector,
    frame: Frame,
    members: Sequence[Rank],
    more: Mapping[RankId, str],
    found: str,
) -> None:
    text = f"> {place(frame)}" + (f"\n-> {found}" if found else "")
    for rank in members:
        below = more.get(rank.rank_id)
        collector.answer(rank.rank_id, Answer(f"{text}\n{below}" if below else text))


def selected(rank: Rank) -> Frame | None:
    """Return the frame that `u` and `d` went to, the innermost at first; None while it runs."""
    frames = rank.stop.frames if rank.stop else None
    return frames[rank.stop.selected] if rank.stop and frames else None


def place(frame: Frame) -> str:
    """Return `/job/train.py(7)train()`, as pdb writes it."""
    return f"{frame.path}({frame.line}){frame.name}()"


def stack(stop: Stop) -> str:
    """Return the whole stack, the newest frame last and the selected one marked, as pdb's `w`."""
    frames = list(enumerate(stop.frames or ()))
    return "\n".join(
        ("> " if index == stop.selected else "  ") + place(frame)
        for index, frame in reversed(frames)
    )


RUNNING = "running"


class Invocation(NamedTuple):
    """One command for some ranks. `command` is its canonical name, '' for plain Python.

    `timeout` is in seconds; `then` is called once.
    """

    core: SessionState
    fan_out: FanOutEvaluator
    client: Client
    ranks: list[Rank]
    command: str
    argument: str
    timeout: float
    then: Callable[[Answers], None]

    def view(self, function: str, *arguments: object) -> str:
        """Return what a stopped rank evaluates: a function of `injected.pdb_views`, called."""
        return call(self.core.injected["pdb_views"], function, *map(str, arguments))

    def answer(self, text: Callable[[Rank], str]) -> None:
        """Answer for each rank at once."""
        collector = self.collector()
        for rank in self.ranks:
            collector.answer(rank.rank_id, Answer(text(rank)))

    def collector(self) -> ReplyCollector:
        """Wait for an answer of every rank."""
        ranks = (rank.rank_id for rank in self.ranks)
        return ReplyCollector(self.core, ranks, self.then, self.timeout)

    def stopped(self, collector: ReplyCollector) -> list[Rank]:
        """Return the ranks that stand still; the others fail, each with its state."""
        standing = [rank for rank in self.ranks if stands(rank)]
        for rank in self.ranks:
            if not stands(rank):
                collector.fail(rank.rank_id, problem_of(rank, self.command))
        return standing


Run: TypeAlias = "Callable[[Invocation], None]"


def stands(rank: Rank) -> bool:
    """Whether the rank is stopped, in a place that is known."""
    return rank.phase.live and rank.stop is not None and bool(rank.stop.frames)


def problem_of(rank: Rank, command: str) -> str:
    """Return why a command for stopped ranks does nothing in this one."""
    if not rank.phase.live:
        return f"{rank.state}: {rank.reason}" if rank.reason else f"is {rank.state}"
    if rank.stop is not None:
        return "its stack is not known: pause it again"
    return f"is {rank.state}: {command!r} needs a stopped rank"
