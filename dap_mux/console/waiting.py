"""`wait`: for scripts, until ranks are in a state."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from dap_mux.console.picture import Row, id_of
from dap_mux.errors import DapMuxError
from dap_mux.rank_sets import STATES, with_group

if TYPE_CHECKING:
    from dap_mux.console.console import Console

DEFAULT_TIMEOUT_S: Final = 60.0
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?s?")


class NotInTime(DapMuxError):
    """Ranks were not in the state that a script waits for: it goes no further."""


async def wait(console: Console, rest: str) -> None:
    """`wait [RANKS] [STATE] [SECONDS]`. Raises NotInTime."""
    ranks, state, seconds = read(rest)
    last: list[Row] = []

    async def until_all_are() -> None:
        nonlocal last
        while True:
            ids = [id_of(row) for row in await console.link.look(with_group(ranks))]
            rows = console.link.picture.rows
            last = [rows[id] for id in ids if id in rows]
            if last and all(row["state"] == state for row in last):
                return
            await console.link.moved()
            if console.link.over.is_set():
                return

    try:
        await asyncio.wait_for(until_all_are(), seconds)
    except asyncio.TimeoutError:
        others = sorted({str(row["state"]) for row in last if row["state"] != state})
        name = console.link.picture.name
        still = "; ".join(
            f"{name([id_of(row)[:2] for row in last if row['state'] == other])} {other}"
            for other in others
        )
        why = still or "there are no such ranks"
        raise NotInTime(f"wait {ranks} {state}: not within {seconds:g} s: {why}") from None
    if console.link.over.is_set() and state != "exited":
        raise NotInTime(f"wait {ranks} {state}: {console.link.why_over}")
    console.screen.say(f"{ranks}: {state}")


def read(rest: str) -> tuple[str, str, float]:
    """Return the ranks, the state and the seconds that a line means: all, stopped, 60."""
    words, seconds, state = rest.split(), DEFAULT_TIMEOUT_S, "stopped"
    if len(words) > 1 and _SECONDS.fullmatch(words[-1]):
        seconds = float(words.pop().rstrip("s"))
    if words and words[-1] in STATES:
        state = words.pop()
    return " ".join(words) or "all", state, seconds
