"""`wait`: block a script until ranks are in a state."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from dap_mux.frontends.console.context import Context
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.rank_sets import STATES, with_group
from dap_mux.pure.rank_sets.rank_rows import Row, id_of

DEFAULT_TIMEOUT_S: Final = 60.0
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?s?")


async def wait(console: Context, rest: str) -> None:
    """`wait [RANKS] [STATE] [SECONDS]`. Raises DapMuxError."""
    ranks, state, timeout_s = parse_wait_arguments(rest)
    last: list[Row] = []

    async def until_all_are() -> None:
        nonlocal last
        while True:
            ids = [id_of(row) for row in await console.client.list_ranks(with_group(ranks))]
            rows = console.client.ranks.rows
            last = [rows[id] for id in ids if id in rows]
            if last and all(row["state"] == state for row in last):
                return
            await console.client.wait_for_change()
            if console.client.ended.is_set():
                return

    try:
        await asyncio.wait_for(until_all_are(), timeout_s)
    except asyncio.TimeoutError:
        others = sorted({str(row["state"]) for row in last if row["state"] != state})
        name = console.client.ranks.name
        remaining = "; ".join(
            f"{name([id_of(row)[:2] for row in last if row['state'] == other])} {other}"
            for other in others
        )
        reason = remaining or "no such ranks"
        raise DapMuxError(
            f"wait {ranks} {state}: timed out after {timeout_s:g} s: {reason}"
        ) from None
    if console.client.ended.is_set() and state != "exited":
        raise DapMuxError(f"wait {ranks} {state}: {console.client.end_reason}")
    console.screen.say(f"{ranks}: {state}")


def parse_wait_arguments(rest: str) -> tuple[str, str, float]:
    """Return ranks, state and timeout in seconds; by default all, stopped and 60."""
    arguments, timeout_s, state = rest.split(), DEFAULT_TIMEOUT_S, "stopped"
    if len(arguments) > 1 and _SECONDS.fullmatch(arguments[-1]):
        timeout_s = float(arguments.pop().rstrip("s"))
    if arguments and arguments[-1] in STATES:
        state = arguments.pop()
    return " ".join(arguments) or "all", state, timeout_s
