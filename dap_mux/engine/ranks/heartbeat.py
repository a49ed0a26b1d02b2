"""Tells ranks that the session is alive: those to which it is connected without an adapter.

A session that is stopped or hangs is otherwise alive to its ranks: its system acknowledges what
they send, and answers keep-alive probes. A rank to which nothing has come for `release_after`
seconds runs on by itself (`dap_mux.rank.in_process`).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dap_mux.engine.messages import to_ranks
from dap_mux.engine.state.rank import Connection, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.protocol.messages import Broadcast

BEATS: Final = 4
"""So many are sent in the time after which a rank runs on."""
COMMAND: Final = "setDebuggerProperty"  # pydevd answers at once, and changes nothing
BEAT: Final = Broadcast(COMMAND, {})


class Heartbeat:
    """Beats while a rank is connected without an adapter; does nothing if `release_after` is 0."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._next: int | None = None

    def begin(self) -> None:
        """A rank is connected so."""
        interval = self._core.settings.release_after / BEATS
        if interval and self._next is None:
            self._next = self._core.after(interval, self._beat)

    def _beat(self) -> None:
        self._next = None
        ranks = [rank for rank in self._core.ranks.values() if rank.connection.direct]
        for rank in ranks:
            # One that a rank has not read yet tells it as much as two.
            if rank.phase.linked and not rank.connection.beats:
                rank.connection.beats = True
                then = partial(_answered, rank.connection)
                to_ranks.ask(self._core, rank, COMMAND, BEAT, then, to_ranks.NO_DEADLINE)
        if any(rank.phase.linked for rank in ranks):
            self.begin()


def _answered(connection: Connection, reply: Reply) -> None:
    del reply
    connection.beats = False
