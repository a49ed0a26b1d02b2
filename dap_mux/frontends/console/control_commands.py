"""The console's commands that control ranks: stop, continue, cast, restart, leave one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from dap_mux.frontends.console.context import RANKS_TIMEOUT_S, REQUEST_TIMEOUT_S, Context
from dap_mux.frontends.console.screen import show_cast
from dap_mux.frontends.console.session_client import stopped_rows
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankId, split_leading, with_group

PAUSE_TIMEOUT_S: Final = 2.0  # for ranks in Python code; one that waits in C may not answer at all


def no_arguments(rest: str, name: str) -> None:
    """Raise UsageError when a command without arguments was given some."""
    if rest:
        raise UsageError(f"{name!r} takes no arguments")


async def attach(console: Context, rest: str) -> None:
    """`attach RANK`, `attach NAME RANK`, or several ranks."""
    if not rest:
        raise UsageError("usage: attach RANK, or attach NAME RANK")
    await console.breakpoints.begin()
    rows = await console.client.list_ranks(with_group(rest))
    stopped = [row for row in rows if row["state"] == "stopped"]
    if not stopped:
        states = ", ".join(sorted({str(row["state"]) for row in rows})) or "no such ranks"
        raise UsageError(
            f"{rest}: {states}. Only a stopped rank has a prompt: stop it with 'pause {rest}', or "
            f"evaluate an expression while it runs with 'cast {rest} p EXPRESSION'"
        )
    await console.attach(stopped)


async def on(_: Context, __: str) -> None:
    """`on SET`. Raises UsageError: this is `--words monarch`, which has no current set."""
    raise UsageError("there is no current set with --words monarch: use 'attach' or 'cast'")


async def cast(console: Context, rest: str) -> None:
    """`cast RANKS COMMAND`."""
    if not rest:
        raise UsageError("usage: cast RANKS COMMAND, for example: cast ranks(0:4) p loss")
    ranks, command = split_leading(rest)
    await console.breakpoints.begin(command)
    arguments = {"ranks": ranks, "command": command, "timeout": REQUEST_TIMEOUT_S}
    body = await console.client.request("cast", arguments, timeout_s=RANKS_TIMEOUT_S)
    show_cast(console.screen, body)


async def continue_(console: Context, rest: str) -> None:
    """`continue`: release all ranks and leave; where some are stopped, only if said twice."""
    if rest:
        raise UsageError(f"'continue' applies to all ranks; to continue some, use: cast {rest} c")
    if not console.said_twice and any(
        row["state"] == "stopped" for row in await console.client.list_ranks("all")
    ):
        raise UsageError(
            "ranks are stopped: 'cast all c' continues them, and the console stays; "
            "'continue' once more releases all ranks and leaves"
        )
    await console.client.request("release", {"ranks": "all"})
    console.screen.say("all ranks are released and run on")
    await console.leave()


async def pause(console: Context, rest: str) -> None:
    """`pause [RANKS]`."""
    rows = await console.client.list_ranks(with_group(rest) or "all")
    running = [row for row in rows if row["state"] == "running"]
    if not running:
        raise UsageError("none of these ranks is running")
    requests = [{"threadId": row["threadId"], "singleThread": True} for row in running]
    await asyncio.gather(*(console.client.request("pause", each) for each in requests))
    ids = [(row["group"], row["rank"]) for row in running]
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_until_paused(console, ids), PAUSE_TIMEOUT_S)
    if late := _pausing(console, ids):
        who = console.client.ranks.name(late)
        console.screen.say(f"{who} will stop as soon as Python code runs there", "note")


async def back(console: Context, rest: str) -> None:
    """`back`: to the stop before, in a recording; to the call before, in a replay."""
    no_arguments(rest, "back")
    rows = stopped_rows(await console.client.list_ranks())
    if not rows:
        raise UsageError("no rank is stopped here: pause one before you go back")
    await console.client.request("stepBack", {"threadId": rows[0]["threadId"]})


async def restart(console: Context, rest: str) -> None:
    """`restart [to call N|step N|last]`. Raises UsageError."""
    word, _, place = rest.partition(" ")
    if rest and (word != "to" or not place.strip()):
        raise UsageError("usage: restart, or in a replay restart to call N|step N|last")
    await console.client.request("restart", {"to": place.strip()} if rest else {})


async def _until_paused(console: Context, ids: Iterable[RankId]) -> None:
    while _pausing(console, ids):
        await console.client.wait_for_change()


def _pausing(console: Context, ids: Iterable[RankId]) -> list[RankId]:
    rows = console.client.ranks.rows
    return [id for id in ids if id in rows and rows[id]["state"] == "pausing"]


async def send_ranks(command: str, console: Context, rest: str) -> None:
    """`release RANKS`, `drop RANKS`."""
    if not rest:
        raise UsageError(f"usage: {command} RANKS")
    await console.client.request(command, {"ranks": with_group(rest)})


async def detach(console: Context, rest: str) -> None:
    """`detach`: close the rank prompt."""
    no_arguments(rest, "detach")
    if console.attached is None:
        raise UsageError("not attached to a rank; 'quit' leaves the console")
    console.detach()
