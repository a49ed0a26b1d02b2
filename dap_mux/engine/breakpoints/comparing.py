"""Barrier breakpoints as ranks get them: a condition that waits there for a decision.

The session sends the code for this (`injected.comparisons`) to a rank with its first such
breakpoint. A rank that cannot have it takes the condition as any other: it stops by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Raw

from dap_mux.engine.breakpoints.merge import CONDITION, HIT, Breakpoint
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.outputs import ToRank
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.protocol.messages import Body, Event, encode, raw
from dap_mux.pure.rank_sets.debuggees import label
from dap_mux.pure.remote.injected_sources import InjectedSources, call

MARK: Final = "  # dap-mux waits "  # as in dap_mux/rank/injected/comparisons.py
DECIDED: Final = "dapMuxDecided"  # the same


def waiting(body: Body, item: Breakpoint, compared: str | None, others: str | None) -> Body:
    """Return a breakpoint as it is sent, with a condition that waits where it holds.

    `compared`: the expression as this rank gets it; `others`: where this holds the rank stops
    without waiting, for another breakpoint is on the line.
    """
    condition = body.get(CONDITION) or ("False" if HIT in body else "True")
    read = msgspec.json.encode((item.since, compared, others)).decode()
    return {**body, CONDITION: f"{condition}{MARK}{read}"}


def waits(body: Body) -> bool:
    """Whether a breakpoint as it is sent has such a condition."""
    return MARK in str(body.get(CONDITION, ""))


def enable(core: SessionState, rank: Rank, then: Callable[[], None]) -> None:
    """Call `then` once the rank has been sent what understands these conditions, and answered.

    Not before: debugpy evaluates in another thread than the one that sets breakpoints, so a busy
    rank had the condition first, and stopped there by itself (12 of 55 runs on a busy machine).
    """
    connection = rank.connection

    def answered(reply: Reply) -> None:
        if not reply.ok and connection.link is not None:
            connection.cannot_wait = True
            name = label([rank.id], core.default_group())
            why = reply.problem.strip().rpartition("\n")[2]
            text = f"dap-mux: rank {name} stops at barriers by itself: {why}\n"
            core.warn("rank", f"stops at barriers by itself: {reply.problem}", rank)
            to_clients.broadcast(core, "output", {"category": "important", "output": text})
            core.touch(rank)
        connection.waits = True
        sends, connection.until_it_waits = connection.until_it_waits, []
        for send in sends:
            send()

    if connection.waits:
        then()
        return
    connection.until_it_waits.append(then)
    if len(connection.until_it_waits) == 1:
        to_ranks.ask(core, rank, "evaluate", _enabling(core.injected), answered)


@lru_cache(maxsize=8)
def _enabling(injected: InjectedSources) -> Raw:
    debugger, summaries = "__import__('pydevd').get_global_debugger()", injected["tensor_summary"]
    function = "compare_in_conditions"
    expression = call(injected["comparisons"], function, debugger, repr(summaries))
    return raw({"expression": expression, "context": "watch"})


def decide(core: SessionState, rank: Rank, hold: int, *, stops: bool) -> None:
    """Let a rank that waits in such a condition stop there, or continue."""
    connection = rank.connection
    if connection.link is not None:
        body = raw({"hold": hold, "stop": stops})
        core.out.append(
            ToRank(connection.link, encode(Event(core.next_seq(connection), DECIDED, body)))
        )
