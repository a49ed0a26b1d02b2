"""Commands that make ranks do something, from `attach` and `cast` to leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dap_mux.console.answers import show_cast
from dap_mux.console.words import nothing_more
from dap_mux.errors import UsageError
from dap_mux.rank_sets import split_leading, with_group

if TYPE_CHECKING:
    from dap_mux.console.console import Console

TIMEOUT = 5.0  # s for ranks to answer, as the engine has it


async def attach(console: Console, rest: str) -> None:
    """`attach RANK`, `attach NAME RANK`, or several ranks."""
    if not rest:
        raise UsageError("usage: attach RANK, or attach NAME RANK")
    rows = await console.link.look(with_group(rest))
    stopped = [row for row in rows if row["state"] == "stopped"]
    if not stopped:
        states = ", ".join(sorted({str(row["state"]) for row in rows})) or "nobody"
        raise UsageError(
            f"{rest}: {states}. Only a stopped rank has a prompt: 'pause {rest}' stops it, and "
            f"'cast {rest} p EXPRESSION' asks one that runs"
        )
    await console.attach(stopped)


async def cast(console: Console, rest: str) -> None:
    """`cast RANKS COMMAND`."""
    if not rest:
        raise UsageError("usage: cast RANKS COMMAND, as in: cast ranks(0:4) p loss")
    ranks, command = split_leading(rest)
    asked = {"ranks": ranks, "command": command, "timeout": TIMEOUT}
    body = await console.link.ask("cast", asked, patience=TIMEOUT + 10)
    show_cast(console.screen, body)


async def continue_(console: Console, rest: str) -> None:
    """`continue`: all ranks run on without a debugger, and the console ends."""
    if rest:
        raise UsageError(f"'continue' is for all ranks; for some: cast {rest} c")
    await console.link.ask("release", {"ranks": "all"})
    console.screen.say("every rank is released and runs on")
    await console.leave()


async def pause(console: Console, rest: str) -> None:
    """`pause [RANKS]`: running ranks stop where they are."""
    rows = await console.link.look(with_group(rest) or "all")
    running = [row for row in rows if row["state"] == "running"]
    if not running:
        raise UsageError("no rank of these is running")
    asked = [{"threadId": row["threadId"], "singleThread": True} for row in running]
    await asyncio.gather(*(console.link.ask("pause", one) for one in asked))


async def release(console: Console, rest: str) -> None:
    """`release RANKS`: these run on without a debugger."""
    await _to_ranks(console, "release", rest)


async def drop(console: Console, rest: str) -> None:
    """`drop RANKS`: these are forgotten."""
    await _to_ranks(console, "drop", rest)


async def _to_ranks(console: Console, command: str, rest: str) -> None:
    if not rest:
        raise UsageError(f"usage: {command} RANKS")
    await console.link.ask(command, {"ranks": with_group(rest)})


async def break_(console: Console, rest: str) -> None:
    """`break FILE:LINE [, CONDITION]`."""
    if rest:
        console.screen.say(f"breakpoint {await console.breakpoints.add(rest)}")
        return
    for one in console.breakpoints.all:
        console.screen.say(str(one))
    if not console.breakpoints.all:
        console.screen.say("this console has set no breakpoints; break FILE:LINE sets one")


async def clear(console: Console, rest: str) -> None:
    """`clear N`, `clear FILE:LINE`, `clear all`."""
    if not rest:
        raise UsageError("usage: clear NUMBER, clear FILE:LINE, or clear all")
    for one in await console.breakpoints.clear(rest):
        console.screen.say(f"cleared {one}")


async def detach(console: Console, rest: str) -> None:
    """`detach`: from the prompt on a rank."""
    nothing_more(rest, "detach")
    if console.attached is None:
        raise UsageError("you are not attached to a rank; 'quit' leaves the console")
    console.detach()


async def quit_(console: Console, rest: str) -> None:
    """`quit`."""
    nothing_more(rest, "quit")
    await console.leave()
