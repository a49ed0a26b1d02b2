"""Commands that control ranks or breakpoints, or that leave the session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from dap_mux.console.command import no_arguments
from dap_mux.console.context import REQUEST_TIMEOUT_S, SESSION_TIMEOUT_S, Context
from dap_mux.console.results import show_cast
from dap_mux.errors import UsageError
from dap_mux.rank_sets import RankId, split_leading, with_group

PAUSE_TIMEOUT_S: Final = 2.0  # for ranks in Python code; one that waits in C may not answer at all


async def attach(console: Context, rest: str) -> None:
    """`attach RANK`, `attach NAME RANK`, or several ranks."""
    if not rest:
        raise UsageError("usage: attach RANK, or attach NAME RANK")
    rows = await console.client.list_ranks(with_group(rest))
    stopped = [row for row in rows if row["state"] == "stopped"]
    if not stopped:
        states = ", ".join(sorted({str(row["state"]) for row in rows})) or "no such ranks"
        raise UsageError(
            f"{rest}: {states}. Only a stopped rank has a prompt: stop it with 'pause {rest}', or "
            f"evaluate an expression while it runs with 'cast {rest} p EXPRESSION'"
        )
    await console.attach(stopped)


async def cast(console: Context, rest: str) -> None:
    """`cast RANKS COMMAND`."""
    if not rest:
        raise UsageError("usage: cast RANKS COMMAND, for example: cast ranks(0:4) p loss")
    ranks, command = split_leading(rest)
    arguments = {"ranks": ranks, "command": command, "timeout": REQUEST_TIMEOUT_S}
    timeout_s = REQUEST_TIMEOUT_S + SESSION_TIMEOUT_S
    body = await console.client.request("cast", arguments, timeout_s=timeout_s)
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


async def _until_paused(console: Context, ids: Iterable[RankId]) -> None:
    while _pausing(console, ids):
        await console.client.wait_for_change()


def _pausing(console: Context, ids: Iterable[RankId]) -> list[RankId]:
    rows = console.client.ranks.rows
    return [id for id in ids if id in rows and rows[id]["state"] == "pausing"]


async def release(console: Context, rest: str) -> None:
    """`release RANKS`: let them run on without a debugger."""
    await _send_ranks(console, "release", rest)


async def drop(console: Context, rest: str) -> None:
    """`drop RANKS`: remove them from the session."""
    await _send_ranks(console, "drop", rest)


async def _send_ranks(console: Context, command: str, rest: str) -> None:
    if not rest:
        raise UsageError(f"usage: {command} RANKS")
    await console.client.request(command, {"ranks": with_group(rest)})


async def break_(console: Context, rest: str) -> None:
    """`break FILE:LINE [, CONDITION]`; without arguments, list the breakpoints."""
    if rest:
        console.screen.say(f"breakpoint {await console.breakpoints.add(rest)}")
        return
    for breakpoint_ in console.breakpoints.all:
        console.screen.say(str(breakpoint_))
    if not console.breakpoints.all:
        console.screen.say("this console has no breakpoints; set one with break FILE:LINE")


async def clear(console: Context, rest: str) -> None:
    """`clear N`, `clear FILE:LINE`, `clear all`."""
    if not rest:
        raise UsageError("usage: clear NUMBER, clear FILE:LINE, or clear all")
    for line in await console.breakpoints.clear(rest):
        console.screen.say(line)


async def detach(console: Context, rest: str) -> None:
    """`detach`: close the rank prompt."""
    no_arguments(rest, "detach")
    if console.attached is None:
        raise UsageError("not attached to a rank; 'quit' leaves the console")
    console.detach()


async def quit_(console: Context, rest: str) -> None:
    """`quit`."""
    no_arguments(rest, "quit")
    await console.leave()
