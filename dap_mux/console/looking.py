"""Commands that look: `list`, `focus`, `scope`, `view`, `groups`, `compare`, `help`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dap_mux.console.answers import show_compare
from dap_mux.console.picture import Row, stopped_rows
from dap_mux.console.tables import list_words, ranks_table
from dap_mux.console.words import help_text, nothing_more, split
from dap_mux.errors import UsageError
from dap_mux.rank_sets import RankSetError, split_leading, with_group

if TYPE_CHECKING:
    from dap_mux.console.console import Console
    from dap_mux.console.link import Link

_WITHIN: Final = re.compile(
    r"(?P<rest>.*\S)\s+within\s+(?P<number>[0-9]*\.?[0-9]+(?:e-?[0-9]{1,3})?)(?P<percent>%?)"
)


async def list_(console: Console, rest: str) -> None:
    """`list [RANKS] [classes|full]`."""
    ranks, how = list_words(rest, default="stopped")
    rows = await _rows(console.link, ranks)
    if rows:
        console.screen.table(ranks_table(rows, how))
    else:
        console.screen.say(f"no rank is {ranks}" if ranks == "stopped" else f"no ranks in {ranks}")
    console.screen.say(console.link.picture.counts(), "quiet")


async def _rows(link: Link, ranks: str) -> list[Row]:
    """Ask for everybody, whom the counts are of; what most people look at is among them."""
    named = None if ranks in ("all", "stopped") else await link.look(ranks, workers=True)
    everybody = await link.look(workers=True)
    if named is not None:
        return named
    return stopped_rows(everybody) if ranks == "stopped" else everybody


async def focus(console: Console, rest: str) -> None:
    """`focus RANK`: every client looks there."""
    rows = await console.link.look(with_group(rest)) if rest else []
    if len(rows) != 1:
        raise UsageError(f"usage: focus RANK{f' (one rank, not {len(rows)})' if rows else ''}")
    asked = {"rank": rows[0]["rank"], "group": rows[0]["group"]}
    body = await console.link.ask("focus", asked)
    console.screen.say(f"rank {body['rank']} at {body['path']}:{body['line']} ({body['function']})")


async def scope(console: Console, rest: str) -> None:
    """`scope [VALUE]`."""
    await _value(console, "scope", rest)


async def view(console: Console, rest: str) -> None:
    """`view [VALUE]`."""
    await _value(console, "view", rest)


async def _value(console: Console, name: str, rest: str) -> None:
    body = await console.link.ask(name, {"value": rest} if rest else {})
    console.screen.say(f"{name}: {body['value']}")


async def groups(console: Console, rest: str) -> None:
    """`groups`, `groups NAME RANKS`, `groups delete NAME`."""
    name, more = split(rest)
    name, more = name.removeprefix("@"), more.removeprefix("=").strip()
    if rest and not more:
        raise UsageError("usage: groups, groups NAME RANKS, or groups delete NAME")
    define = {"define": {"name": name, "ranks": with_group(more)}}
    asked = {"delete": more} if name == "delete" else define if rest else {}
    body = await console.link.ask("groups", asked)
    console.names = [(group["name"], group["ranks"]) for group in body["groups"]]
    for group in body["groups"]:
        console.screen.say(f"@{group['name']} = {group['ranks']}")
    if not body["groups"]:
        console.screen.say("no named sets; 'groups NAME RANKS' makes one, which is then @NAME")


async def compare(console: Console, rest: str) -> None:
    """`compare [RANKS] EXPRESSION [within 5%]`."""
    show_compare(
        console.screen, await console.link.ask("compare", compare_words(rest), patience=15)
    )


def compare_words(rest: str) -> dict[str, object]:
    """Return the arguments of `compare` that a line means. Raises UsageError."""
    if not rest:
        raise UsageError("usage: compare [RANKS] EXPRESSION [within 1e-3|5%]")
    within = _WITHIN.fullmatch(rest)
    asked: dict[str, object] = {}
    if within:
        rest, share = within["rest"], 0.01 if within["percent"] else 1.0
        asked["tolerance"] = float(within["number"]) * share
    try:
        ranks, expression = split_leading(rest)
    except RankSetError:
        return {**asked, "expression": rest}
    return {**asked, "ranks": ranks, "expression": expression}


async def help_(console: Console, rest: str) -> None:
    """`help`."""
    nothing_more(rest, "help")
    from dap_mux.console.commands import COMMANDS  # noqa: PLC0415  (the table names this function)

    console.screen.say(f"{help_text(COMMANDS)}\n\n{RANK_SETS}")


RANK_SETS = """\
RANKS is 3, 0-3,7, ranks(1:10:2), ranks(dp=0, tp=1:3), all, stopped, running or @NAME; NAME 13 and
NAME ranks(...) are of one group; & | - ~ and parentheses join them."""
