"""Differ breakpoints as ranks get them: a condition that tells its value and waits there.

The session sends the code for this (`injected.comparisons`) to a rank with its first such
breakpoint. A rank without it takes the condition for `True`: it stops, and is asked for its value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from dap_mux.engine.breakpoints.merge import CONDITION, Breakpoint
from dap_mux.engine.injected_sources import InjectedSources, call
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.outputs import ToRank
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.protocol.messages import Broadcast, Event, encode, raw

MARK: Final = "True  # dap-mux compares "  # as in dap_mux/injected/comparisons.py
DECIDED: Final = "dapMuxDecided"  # the same


def condition_of(item: Breakpoint, compared: str) -> str:
    """Return the condition; `compared`: the expression as this rank gets it."""
    return f"{MARK}{msgspec.json.encode((item.since, compared)).decode()}"


def compares(body: Body) -> bool:
    """Whether a breakpoint as it is sent has such a condition."""
    return str(body.get(CONDITION, "")).startswith(MARK)


def enable(core: SessionState, rank: Rank) -> None:
    """Send what understands these conditions, once to each connection."""
    if not rank.connection.compares:
        rank.connection.compares = True
        to_ranks.ask(core, rank, "evaluate", _enabling(core.injected), lambda reply: None)


@lru_cache(maxsize=8)
def _enabling(injected: InjectedSources) -> Broadcast:
    debugger, summaries = "__import__('pydevd').get_global_debugger()", injected["tensor_summary"]
    function = "compare_in_conditions"
    expression = call(injected["comparisons"], function, debugger, repr(summaries))
    return Broadcast("evaluate", {"expression": expression, "context": "watch"})


def decide(core: SessionState, rank: Rank, hold: int, *, stops: bool) -> None:
    """Tell a rank that waits in such a condition to stop there, or to run on."""
    connection = rank.connection
    if connection.link is not None:
        connection.seq += 1
        body = raw({"hold": hold, "stop": stops})
        core.out.append(ToRank(connection.link, encode(Event(connection.seq, DECIDED, body))))
