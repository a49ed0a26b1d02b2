"""The console's commands of breakpoints: pdb's, on one list of lines and functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dap_mux.frontends.console.breakpoints import Breakpoint
from dap_mux.frontends.console.context import Context
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.rank_rows import Row


async def break_(temporary: bool, console: Context, rest: str) -> None:
    """`break LOCATION [, CONDITION]`, `tbreak`; without arguments, list the breakpoints."""
    breakpoints = console.breakpoints
    if rest:
        ranks, rows = console.target
        some = frozenset[RankId]() if ranks == "all" else frozenset(map(_rank, rows))
        if ranks != "all" and not some:
            raise UsageError(f"no ranks match {ranks}")
        await breakpoints.add(rest, rows, some, temporary=temporary)
    elif not breakpoints.all:
        console.screen.say("this console has no breakpoints; set one with break FILE:LINE")
    _show(console, breakpoints.all[-1:] if rest else breakpoints.all)


async def clear(console: Context, rest: str) -> None:
    """`clear N ...`, `clear FILE:LINE`, `clear FUNCTION`, `clear all`."""
    if not rest:
        raise UsageError("usage: clear NUMBER, clear FILE:LINE, or clear all")
    for each in await console.breakpoints.clear(rest):
        console.screen.say(f"cleared {each}")


async def switch(name: str, console: Context, rest: str) -> None:
    """`enable N ...`, `disable N ...`."""
    if not rest:
        raise UsageError(f"usage: {name} NUMBER")
    _show(console, await console.breakpoints.alter(rest, enabled=name == "enable"))


async def condition(console: Context, rest: str) -> None:
    """`condition N [CONDITION]`."""
    number, _, text = rest.partition(" ")
    if not number:
        raise UsageError("usage: condition NUMBER [CONDITION]")
    _show(console, await console.breakpoints.alter(number, condition=text.strip()))


async def ignore(console: Context, rest: str) -> None:
    """`ignore N [COUNT]`."""
    number, _, count = rest.partition(" ")
    if not number or not (count.strip() or "0").isdecimal():
        raise UsageError("usage: ignore NUMBER [COUNT]")
    hits = f"> {int(count)}" if count.strip("0 ") else ""
    _show(console, await console.breakpoints.alter(number, hits=hits))


def _show(console: Context, breakpoints: Iterable[Breakpoint]) -> None:
    for each in breakpoints:
        console.screen.say(console.breakpoints.described(each, console.named_sets))


def _rank(row: Row) -> RankId:
    return row["group"], row["rank"]


NOT_FINITE: Final = "notFinite"  # exception filters of the session's own
LOCATED: Final = "notFiniteLocated"
DIVERGED: Final = "diverged"


async def catch(on: bool, console: Context, rest: str) -> None:
    """`catch nan`, `catch diverged`, `uncatch nan` and the like. Raises UsageError."""
    stops = "ranks stop" if on else "no rank stops"
    if rest == "diverged":
        await console.client.catch(DIVERGED, on=on)
        console.screen.say(f"{stops} where parameters differ that ranks keep equal")
        return
    if rest not in ("nan", "inf"):
        raise UsageError(f"usage: {'catch' if on else 'uncatch'} nan|diverged")
    await console.client.catch(NOT_FINITE, on=on)
    if not on:
        await console.client.catch(LOCATED, on=False)
    console.screen.say(f"{stops} at values that are not finite")


async def locate(console: Context, rest: str) -> None:
    """`locate`, `locate on`, `locate off`. Raises UsageError."""
    if rest not in ("", "on", "off"):
        raise UsageError("usage: locate [on|off]")
    await console.client.catch(LOCATED, on=rest != "off")
    off = "lines that make values which are not finite are no longer named"
    on = "ranks stop at values that are not finite, and name the line, from their next step on"
    console.screen.say(off if rest == "off" else on)
