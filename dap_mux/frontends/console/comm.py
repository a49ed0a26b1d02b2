"""The console's `comm`."""

from __future__ import annotations

from typing import Final

from dap_mux.frontends.console.context import RANKS_TIMEOUT_S, Context
from dap_mux.pure.rank_sets import with_group

MODES: Final = ("off", "time", "finite", "hash")


async def comm(console: Context, rest: str) -> None:
    """`comm [RANKS] [off|time|finite|hash]`."""
    words = rest.split()
    mode = words.pop() if words and words[-1] in MODES else ""
    arguments = {"ranks": with_group(" ".join(words)) or "all", "mode": mode}
    body = await console.client.request("comm", arguments, timeout_s=RANKS_TIMEOUT_S)
    for one in body["modes"]:
        console.screen.say(f"{{{one['ranks']}}} comm is {one['mode']}")
    for error in body["errors"]:
        console.screen.say(f"{{{error['ranks']}}}: {error['message']}", "error")
