"""Requests that a rank makes of its client: refused, but for `startDebugging`."""

from __future__ import annotations

import logging
from typing import Final

from dap_mux.engine.events.rank_events import RankEvents
from dap_mux.engine.outputs import ToRank
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.protocol.messages import Message, Response, encode, plain
from dap_mux.protocol.rank_messages import announces_child

NO_CHILD: Final = "its configuration has no `subProcessId` that is a number"


def answer_request(core: SessionState, events: RankEvents, rank: Rank, message: Message) -> None:
    """Answer a rank's request (`runInTerminal` and the like)."""
    problem = "not supported"
    if message.command == "startDebugging":
        problem = "" if announces_child(message.arguments) else NO_CHILD
    rank.connection.seq += 1
    answer = Response(rank.connection.seq, message.seq, not problem, message.command, problem)
    assert rank.link is not None
    core.out.append(ToRank(rank.link, encode(answer)))
    if problem:
        core.log(logging.INFO, "rank", f"refused {message.command!r}: {problem}", rank)
    else:
        events.child(rank, plain(message.arguments)["configuration"])
