"""Whether another process is to be found where a rank was: it has been started again.

That may be known before the old process is seen to end: the two are told by different programs.
"""

from __future__ import annotations

from dap_mux.engine.endpoint import Endpoint
from dap_mux.engine.ranks.process_watch import forget_lost
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState


def is_another(before: Endpoint, now: Endpoint) -> bool:
    """Whether a process listens there that has not before, as far as pids tell."""
    return now.ready and None not in (before.pid, now.pid) and before.pid != now.pid


def is_replaced(rank: Rank) -> bool:
    """Whether the process that its last connection led to has made room for another.

    A rank that dials is another incarnation at each call, and says its pid.
    """
    another = rank.connection.incarnation != rank.endpoint.incarnation
    return another and not rank.endpoint.dials


def expect_another(core: SessionState, rank: Rank) -> None:
    """Its old process does not matter any more, also where it is lost and was searched for."""
    if is_replaced(rank):
        forget_lost(core, rank)
