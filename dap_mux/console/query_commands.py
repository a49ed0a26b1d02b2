"""Commands that show something: `list`, `focus`, `scope`, `view`, `groups`, `compare`."""

from __future__ import annotations

import re
from typing import Final

from dap_mux.console.command import split_command
from dap_mux.console.context import REQUEST_TIMEOUT_S, SESSION_TIMEOUT_S, Context
from dap_mux.console.rank_tracker import stopped_rows
from dap_mux.console.results import show_compare
from dap_mux.console.session_client import SessionClient
from dap_mux.console.stack_tree import show_stacks
from dap_mux.console.tables import parse_list_arguments, ranks_table
from dap_mux.console.verdict import show_verdict
from dap_mux.errors import UsageError
from dap_mux.rank_rows import Row
from dap_mux.rank_sets import RankSetError, split_leading, with_group

_WITHIN: Final = re.compile(
    r"(?P<rest>.*\S)\s+within\s+(?P<number>[0-9]*\.?[0-9]+(?:e-?[0-9]{1,3})?)(?P<percent>%?)"
)


async def list_(console: Context, rest: str) -> None:
    """`list [RANKS] [classes|full]`."""
    ranks, layout = parse_list_arguments(rest, default="stopped")
    rows = await _rows(console.client, ranks)
    if rows:
        console.screen.table(ranks_table(rows, layout))
    elif ranks == "stopped":
        console.screen.say("no stopped ranks")
    else:
        console.screen.say(f"no ranks match {ranks}")
    console.screen.say(console.client.ranks.counts(), "quiet")


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


async def scope(console: Context, rest: str) -> None:
    """`scope [VALUE]`."""
    await _show_or_set(console, "scope", rest)


async def view(console: Context, rest: str) -> None:
    """`view [VALUE]`."""
    await _show_or_set(console, "view", rest)


async def _show_or_set(console: Context, name: str, value: str) -> None:
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
    arguments, timeout_s = parse_compare_arguments(rest), REQUEST_TIMEOUT_S + SESSION_TIMEOUT_S
    body = await console.client.request("compare", arguments, timeout_s=timeout_s)
    show_compare(console.screen, body)


async def stacks(console: Context, rest: str) -> None:
    """`stacks [RANKS]`."""
    arguments = {"ranks": with_group(rest or "all")}
    timeout_s = REQUEST_TIMEOUT_S + SESSION_TIMEOUT_S
    body = await console.client.request("stacks", arguments, timeout_s=timeout_s)
    show_stacks(console.screen, body)


async def why(console: Context, rest: str) -> None:
    """`why [RANKS]`."""
    arguments = {"ranks": with_group(rest or "all")}
    timeout_s = REQUEST_TIMEOUT_S + SESSION_TIMEOUT_S
    show_verdict(
        console.screen, await console.client.request("why", arguments, timeout_s=timeout_s)
    )


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
