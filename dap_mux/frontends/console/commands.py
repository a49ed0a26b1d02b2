"""The console's commands: Monarch's names and short forms, and our own. The table is at the end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dap_mux.frontends.console.breakpoint_commands import (
    break_,
    catch,
    clear,
    condition,
    ignore,
    locate,
    switch,
)
from dap_mux.frontends.console.comm import comm
from dap_mux.frontends.console.context import (
    RANKS_TIMEOUT_S,
    SLOW_TIMEOUT_S,
    Context,
)
from dap_mux.frontends.console.control_commands import (
    attach,
    back,
    cast,
    continue_,
    detach,
    no_arguments,
    on,
    pause,
    restart,
    send_ranks,
)
from dap_mux.frontends.console.screen import (
    parse_list_arguments,
    ranks_table,
    show_compare,
    show_stacks,
    show_verdict,
)
from dap_mux.frontends.console.session_client import SessionClient, is_exception, stopped_rows
from dap_mux.frontends.console.wait import wait
from dap_mux.frontends.console.words import MEANT, PDB, likely
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankSetError, split_leading, with_group
from dap_mux.pure.rank_sets.rank_rows import Row, id_of

MAX_TEXTS: Final = 64  # of exceptions in a list: more ranks than that fail alike
SLOW: Final = "--slow"
_WITHIN: Final = re.compile(
    r"(?P<rest>.*\S)\s+within\s+(?P<number>[0-9]*\.?[0-9]+(?:e-?[0-9]{1,3})?)(?P<percent>%?)"
)


@dataclass(frozen=True)
class Command:
    """One command: its line in `help`, and the function that gets the rest of the line."""

    usage: str
    summary: str
    run: Callable[[Context, str], Awaitable[None]]
    aliases: tuple[str, ...] = ()
    monarch: str = ""
    """The handler with Monarch's words, where it differs."""

    @property
    def name(self) -> str:
        """The first word of its usage."""
        return self.usage.partition(" ")[0]


def find(name: str) -> Command | None:
    """Find a command by its name or alias."""
    fits = (each for each in COMMANDS if name == each.name or name in each.aliases)
    return next(fits, None)


def known_words() -> list[str]:
    """Return the commands' names and aliases."""
    return [each for command in COMMANDS for each in (command.name, *command.aliases)]


def lookup(name: str) -> Command:
    """Find a command by its name or alias. Raises UsageError with a suggestion."""
    if command := find(name):
        return command
    meant = likely(name, known_words())
    if meant in PDB:
        raise UsageError(f"unknown command {name!r}: send it to ranks by 'cast RANKS {meant}'")
    if meant:
        raise UsageError(f"unknown command {name!r}: did you mean {meant!r}?")
    raise UsageError(
        f"unknown command {name!r}: 'help' lists all commands. To send a command to ranks, use "
        "'cast RANKS COMMAND', or 'attach RANK' first"
    )


def split_command(line: str) -> tuple[str, str]:
    """Split a line into the command's name and the rest."""
    name, _, rest = line.strip().partition(" ")
    return name, rest.strip()


def help_text(*, monarch: bool = False) -> str:
    """Return the commands in columns, with their aliases."""
    width = max(len(command.usage) for command in COMMANDS)
    return "\n".join(
        f"  {command.usage.ljust(width)}  {(monarch and command.monarch) or command.summary}"
        + (f" [{', '.join(command.aliases)}]" if command.aliases else "")
        for command in COMMANDS
    )


# Commands that show something


async def list_(console: Context, rest: str) -> None:
    """`list [RANKS] [classes|full]`."""
    ranks, layout = parse_list_arguments(rest, default="stopped")
    rows = await _rows(console.client, ranks)
    if console.set is not None:
        rows = await _with_exceptions(console.client, rows)
    if rows:
        console.screen.table(ranks_table(rows, layout))
    elif ranks == "stopped":
        console.screen.say("no stopped ranks")
    else:
        console.screen.say(f"no ranks match {ranks}")
    console.screen.say(console.client.ranks.counts(), "quiet")


async def _with_exceptions(client: SessionClient, rows: list[Row]) -> list[Row]:
    """Return the rows, with the texts of exceptions for reasons."""
    held = [row for row in rows if is_exception(row)][:MAX_TEXTS]
    texts = await asyncio.gather(*map(client.exception_text, held))
    reasons = {id_of(row): text for row, text in zip(held, texts, strict=True) if text}
    return [{**row, "reason": reasons.get(id_of(row), row["reason"])} for row in rows]


async def _rows(client: SessionClient, ranks: str) -> list[Row]:
    """Return the rows of these ranks, after updating all rows, which the counts are made of."""
    selected = None if ranks in ("all", "stopped") else await client.list_ranks(ranks, workers=True)
    rows = await client.list_ranks(workers=True)
    if selected is not None:
        return selected
    return stopped_rows(rows) if ranks == "stopped" else rows


async def focus(console: Context, rest: str) -> None:
    """`focus RANK`: show it in every client."""
    rows = await console.client.list_ranks(with_group(rest)) if rest else []
    if len(rows) != 1:
        hint = f" (one rank, not {len(rows)})" if rows else ""
        raise UsageError(f"usage: focus RANK{hint}")
    arguments = {"rank": rows[0]["rank"], "group": rows[0]["group"]}
    body = await console.client.request("focus", arguments)
    console.screen.say(f"rank {body['rank']} at {body['path']}:{body['line']} ({body['function']})")


async def _show_or_set(name: str, console: Context, value: str) -> None:
    """`scope [VALUE]`, `view [VALUE]`."""
    body = await console.client.request(name, {"value": value} if value else {})
    console.screen.say(f"{name}: {body['value']}")


async def groups(console: Context, rest: str) -> None:
    """`groups`, `groups NAME RANKS`, `groups delete NAME`."""
    name, operand = split_command(rest)
    name, operand = name.removeprefix("@"), operand.removeprefix("=").strip()
    if rest and not operand:
        raise UsageError("usage: groups, groups NAME RANKS, or groups delete NAME")
    define = {"define": {"name": name, "ranks": with_group(operand)}}
    arguments = {"delete": operand} if name == "delete" else define if rest else {}
    body = await console.client.request("groups", arguments)
    console.named_sets = [(group["name"], group["ranks"]) for group in body["groups"]]
    for group in body["groups"]:
        console.screen.say(f"@{group['name']} = {group['ranks'] or '(empty)'}")
    if not body["groups"]:
        console.screen.say("no named sets; define @NAME with 'groups NAME RANKS'")


async def compare(console: Context, rest: str) -> None:
    """`compare [RANKS] EXPRESSION [within 5%]`."""
    arguments = parse_compare_arguments(rest)
    body = await console.client.request("compare", arguments, timeout_s=RANKS_TIMEOUT_S)
    show_compare(console.screen, body)
    console.note_failures(body)


async def stacks(console: Context, rest: str) -> None:
    """`stacks [RANKS]`."""
    arguments = {"ranks": with_group(rest or "all")}
    body = await console.client.request("stacks", arguments, timeout_s=RANKS_TIMEOUT_S)
    show_stacks(console.screen, body)


async def why(console: Context, rest: str) -> None:
    """`why [--slow] [RANKS]`."""
    words = rest.split()
    ranks = " ".join(word for word in words if word != SLOW)
    arguments = {"ranks": with_group(ranks or "all"), "slow": SLOW in words}
    limit = SLOW_TIMEOUT_S if SLOW in words else RANKS_TIMEOUT_S
    body = await console.client.request("why", arguments, timeout_s=limit)
    if console.set is not None:
        body["next"] = re.sub(r"\bcast (?=\S+ \w)", "on ", body["next"])
    show_verdict(console.screen, body)


def parse_compare_arguments(rest: str) -> dict[str, object]:
    """Return the arguments of the request `compare` for a line. Raises UsageError."""
    if not rest:
        raise UsageError("usage: compare [RANKS] EXPRESSION [within 1e-3|5%]")
    within = _WITHIN.fullmatch(rest)
    arguments: dict[str, object] = {}
    if within:
        rest, unit = within["rest"], 0.01 if within["percent"] else 1.0
        arguments["tolerance"] = float(within["number"]) * unit
    try:
        ranks, expression = split_leading(rest)
    except RankSetError:
        return {**arguments, "expression": rest}
    return {**arguments, "ranks": ranks, "expression": expression}


async def source(console: Context, rest: str) -> None:
    """`source FILE`. Raises UsageError."""
    if not rest:
        raise UsageError("usage: source FILE")
    await console.source(rest)


async def quit_(console: Context, rest: str) -> None:
    """`quit`."""
    no_arguments(rest, "quit")
    await console.leave()


PLAIN_LINES: Final = """\
Any other line goes to the current set: a command of pdb (n, s, r, unt, c, u, d, w, l, ll, p, pp, a,
j, display ...), an expression, or !statement."""
RANK_SETS: Final = """\
RANKS is 3, 0-3,7, ranks(1:10:2), ranks(dp=0, tp=1:3), all, stopped, running or @NAME; NAME 13 and
NAME ranks(...) select ranks of one group; combine sets with & | - ~ and parentheses."""


async def help_(console: Context, rest: str) -> None:
    """`help`, `help WORD`. Raises UsageError."""
    if rest:
        word = MEANT.get(rest, rest)
        if console.set is not None and word in PDB:
            console.screen.say(f"{word}: {PDB[word]}")
            return
        command = lookup(rest)
        console.screen.say(f"{command.usage}: {command.summary}")
        return
    shown = help_text(monarch=console.set is None)
    more = "" if console.set is None else f"\n\n{PLAIN_LINES}"
    console.screen.say(f"{shown}{more}\n\n{RANK_SETS}")


COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "list [classes|full] [RANKS]",
        "show where ranks are (default: stopped ranks)",
        list_,
        ("l", "ranks"),
    ),
    Command(
        "on [RANKS] [COMMAND]", "choose the ranks that plain lines go to, or send one line", on
    ),
    Command(
        "attach [NAME] RANK", "the same as on RANK", attach, ("a",), "open a pdb prompt on a rank"
    ),
    Command("detach", "the same as on all", detach, (), "close the pdb prompt"),
    Command(
        "cast [NAME] RANKS COMMAND",
        "the same as on RANKS COMMAND",
        cast,
        (),
        "run a pdb command or evaluate an expression on many ranks",
    ),
    Command(
        "compare [RANKS] EXPRESSION [within 5%]",
        "show which ranks have a different value",
        compare,
        ("cmp",),
    ),
    Command(
        "stacks [RANKS]",
        "show where ranks are, as one tree; stops none",
        stacks,
    ),
    Command(
        "why [--slow] [RANKS]",
        "say why the job does not move on, or is slow; stops none",
        why,
    ),
    Command(
        "comm [RANKS] [off|time|finite|hash]",
        "show or change what ranks record of their communication",
        comm,
    ),
    Command(
        "break FILE:LINE|FUNCTION [, CONDITION]",
        "set a breakpoint; 'ranks(0:4): loss > 3' is a condition",
        partial(break_, False),
        ("b",),
    ),
    Command(
        "tbreak FILE:LINE|FUNCTION [, CONDITION]",
        "the same, until ranks have stopped there",
        partial(break_, True),
        ("tb",),
    ),
    Command("clear N|FILE:LINE|all", "remove breakpoints", clear, ("cl",)),
    Command("disable N", "keep a breakpoint that stops no rank", partial(switch, "disable")),
    Command("enable N", "have it stop ranks again", partial(switch, "enable")),
    Command("condition N [CONDITION]", "change a breakpoint's condition", condition),
    Command("ignore N [COUNT]", "pass a breakpoint COUNT times", ignore),
    Command(
        "catch nan|diverged",
        "stop where NaN is about to be sent; where replicas part",
        partial(catch, True),
    ),
    Command("uncatch nan|diverged", "do so no more", partial(catch, False)),
    Command("locate [on|off]", "the same, and name the line that made them", locate),
    Command("pause [RANKS]", "pause running ranks", pause),
    Command("back", "go to the stop before, in a recording; to the call, in a replay", back),
    Command("restart [to call N|step N|last]", "run a replay anew, up to there", restart),
    Command(
        "wait [RANKS] [STATE] [SECONDS]",
        "wait until RANKS (all) are in STATE (stopped), at most SECONDS (60)",
        wait,
    ),
    Command("focus RANK", "show this rank in every debugger", focus),
    Command(
        "scope [auto|rank|class|all]",
        "which ranks an editor's step applies to",
        partial(_show_or_set, "scope"),
    ),
    Command("view [auto|ranks|classes]", "how editors show ranks", partial(_show_or_set, "view")),
    Command("groups [NAME RANKS]", "list named rank sets, or define @NAME", groups),
    Command("drop RANKS", "remove ranks from the session for good", partial(send_ranks, "drop")),
    Command("release RANKS", "let ranks run on without a debugger", partial(send_ranks, "release")),
    Command(
        "continue",
        "continue the set to its next stop",
        continue_,
        ("c", "cont"),
        "release all ranks and leave",
    ),
    Command("source FILE", "run the commands in a file", source),
    Command("quit", "leave; other debuggers stay connected", quit_, ("q", "exit")),
    Command("help [WORD]", "show this help", help_, ("h", "?")),
)
