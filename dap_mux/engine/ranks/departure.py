"""How a rank is left: it runs on, and its connection ends politely.

That is `disconnect`, its answer, and only then the end of the connection. An adapter that is left
before `attach` closes its port for ever (measured), so a handshake that has begun goes on as far as
that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dap_mux.engine.messages import to_ranks
from dap_mux.engine.ranks.connector import Connector, Transitions, Watcher
from dap_mux.engine.ranks.handshake import Handshake
from dap_mux.engine.ranks.patching import AttachRequest
from dap_mux.engine.state.phases import AfterLeaving, Phase, Signal
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState

# Then a rank must run on, although a debugpy that is not patched may lose its adapter over it.
EVALUATE_GRACE: Final = 0.8  # s


class Departure(Struct, eq=False):
    """Takes leave of connected ranks; `left` is called for each once its connection is closed."""

    _core: SessionState
    _transitions: Transitions
    _connector: Connector
    _handshake: Handshake
    _request: AttachRequest
    _watcher: Watcher
    _left: Callable[[Rank], None]

    def begin(self, rank: Rank) -> None:
        """Let it run on, and disconnect as soon as that does no harm."""
        was_live, stop = rank.phase.live, rank.stop
        # A child that was never told to run waits for ever, and so does who is released.
        released = rank.after_leaving is not AfterLeaving.RETURN
        runs_on = rank.phase in (Phase.STARTING, Phase.LIVE) or (
            rank.phase is Phase.CONFIGURING and (rank.main is not None or released)
        )
        self._transitions.to(rank, Signal.LEAVE)
        if runs_on:
            self._handshake.run_on(rank)
        if stop is not None and stop.reason == "exception":
            # Left alone there, a rank takes it for a broken tunnel and is held for the next client.
            to_ranks.ask(
                self._core, rank, "continue", {"threadId": stop.thread}, lambda reply: None
            )
        self._watcher.lost(rank, was_live)
        if was_live and self._request.debugs_children:  # no client is there for its next child
            self._handshake.free_children(rank)
        if rank.phase is Phase.LEAVING_EARLY:
            self._handshake.await_adapter(rank)
        else:
            self.disconnect(rank)

    def disconnect(self, rank: Rank) -> None:
        """Wait for evaluates: one answered after `disconnect` ends debugpy's adapter (measured).

        Unless the rank's pydevd is patched not to answer a client that has left.
        """
        if rank.phase is Phase.LEAVING_EARLY:
            self._transitions.to(rank, Signal.LEAVE)
        to_ranks.when_answered(
            self._core, rank, "evaluate", lambda: self._disconnect(rank), EVALUATE_GRACE
        )

    def _disconnect(self, rank: Rank) -> None:
        limit = self._core.settings.leave_timeout
        arguments = {"restart": False, "terminateDebuggee": False}
        to_ranks.ask(
            self._core, rank, "disconnect", arguments, lambda reply: self._close(rank), limit
        )

    def _close(self, rank: Rank) -> None:
        if rank.link is not None and rank.phase is Phase.LEAVING:
            self._connector.hang_up(rank, "released")
            self._left(rank)
