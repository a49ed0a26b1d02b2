"""How a rank is attached: initialize, attach, initialized, breakpoints, configurationDone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dap_mux.engine.messages import to_ranks
from dap_mux.engine.messages.requests import MAX_OFFERS, offers_of
from dap_mux.engine.ranks import patching
from dap_mux.engine.ranks.connector import Connector, Decisions, Watcher, change_phase
from dap_mux.engine.ranks.patching import (
    IS_TRACKER,
    YES,
    prints_values,
)
from dap_mux.engine.state.path_mappings import arguments_for
from dap_mux.engine.state.phases import AfterLeaving, Phase, Signal
from dap_mux.engine.state.rank import Connection, Rank, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.protocol.messages import Body, plain

# Tells ranks that the session is alive: those to which it is connected without an adapter.
#
# A session that is stopped or hangs is otherwise alive to its ranks: its system acknowledges what
# they send, and answers keep-alive probes. A rank to which nothing has come for `release_after`
# seconds runs on by itself (`dap_mux.rank.in_process`).

BEATS: Final = 4
"""So many are sent in the time after which a rank runs on."""
COMMAND: Final = "setDebuggerProperty"  # pydevd answers at once, and changes nothing


class Heartbeat(Struct, eq=False):
    """Beats while a rank is connected without an adapter; does nothing if `release_after` is 0."""

    _core: SessionState
    _next: int | None = None

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
                to_ranks.ask(self._core, rank, COMMAND, {}, then, to_ranks.NO_DEADLINE)
        if any(rank.phase.linked for rank in ranks):
            self.begin()


def _answered(connection: Connection, reply: Reply) -> None:
    del reply
    connection.beats = False


KEY: Final = "dapMuxKey"  # as in dap_mux/rank/injected/attach/adapter_program.py
SESSION: Final = "dapMux"  # as in dap_mux/rank/own_port.py
INITIALIZE_ARGUMENTS: Final[Body] = {
    "clientID": "dap-mux",
    "adapterID": "debugpy",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
    "supportsVariableType": True,
    "supportsVariablePaging": False,
    "supportsMemoryEvent": False,
    "supportsProgressReporting": False,
}

_INITIALIZE: Final = msgspec.json.encode(INITIALIZE_ARGUMENTS)
ALREADY_DEBUGGED: Final = "already being debugged"  # debugpy's words
BUSY: Final = (
    f"{ALREADY_DEBUGGED}: by another debugger, or still over a connection that broke "
    "(debugpy notices within 20 s); retrying until it is free"
)

# Then a rank that is left must run on, although a debugpy that is not patched may lose its adapter
# over it.
EVALUATE_GRACE: Final = 0.8  # s


# No `attach` before the adapter has met its debuggee ("An adapter accepts clients before it is
# ready" in docs/internals/debugpy.md), and none left out once `initialize` is sent, because an
# adapter that is left before `attach` closes its port for ever. Before the rank runs on, an
# expression keeps its children from waiting for a debugger that will not come.
class Handshake(Struct, eq=False):
    """The steps from a connection to a rank that is live, and back: no decision."""

    _core: SessionState
    _connector: Connector
    _outcome: Decisions
    _watcher: Watcher
    _heartbeat: Heartbeat

    def begin(self, rank: Rank) -> None:
        """The TCP connection is there. From now on it is never just closed."""
        if not rank.phase.leaving:
            change_phase(self._core, rank, Signal.UP)
        about, then = self._introduction(rank), partial(self._initialized, rank)
        limit = self._core.settings.silence_timeout
        to_ranks.ask_for(self._core, rank, "initialize", about, dict[str, Any], then, limit)
        if rank.connection.direct:
            self._heartbeat.begin()
        # In one write where that is safe: a session that ends in between would cost the rank its
        # port.
        if rank.connection.adapter_ready and rank.phase is Phase.GREETING:
            self._attach(rank)

    def _introduction(self, rank: Rank) -> Raw:
        """The arguments of `initialize`: the same for all, but for what is said of us.

        By that a rank that accepts connections by itself serves us without an adapter.
        """
        key = self._key_of(rank) if self._core.settings.key else ""
        about: Body = {"key": key, "children": self._core.flow.debugs_children}
        if silence := self._core.settings.release_after:
            about["silence"] = silence
        told = msgspec.json.encode({"child": rank.endpoint.pid} if rank.main else about)
        return Raw(b'%b,"%b":%b}' % (_INITIALIZE[:-1], SESSION.encode(), told))

    def served(self, rank: Rank, debugpy: str) -> None:
        """The rank has no adapter: what the adapter would do is ours to do."""
        rank.connection.direct, rank.debugpy = True, debugpy
        self._heartbeat.begin()
        self.adapter_is_ready(rank)

    def _initialized(self, rank: Rank, said: Body | None, reply: Reply) -> None:
        before_attach = rank.phase in (Phase.GREETING, Phase.LEAVING_EARLY)
        if not before_attach and rank.phase is not Phase.ATTACHING:
            return
        if said is not None:
            rank.connection.offers = _known_offers(bytes(reply.body))
            if before_attach:
                self.await_adapter(rank)
        elif rank.phase is Phase.LEAVING_EARLY:
            self.disconnect(rank)
        elif rank.link is not None:
            self._outcome.failed(rank, _why_refused(reply))

    def await_adapter(self, rank: Rank) -> None:
        """Attach as soon as the adapter has met its debuggee, or after a while without its word."""
        if rank.connection.offers is None:
            return
        if not rank.connection.adapter_ready:
            limit = self._core.settings.greeting_timeout
            rank.timer = self._core.after(limit, lambda: self.adapter_is_ready(rank))
        self._attach_when_ready(rank)

    def adapter_is_ready(self, rank: Rank) -> None:
        """The adapter has met its debuggee (it lists its internal socket), or never says so."""
        rank.connection.adapter_ready = True
        self._attach_when_ready(rank)

    def _attach_when_ready(self, rank: Rank) -> None:
        if not rank.connection.adapter_ready or rank.connection.offers is None:
            return
        if rank.phase is Phase.LEAVING_EARLY:
            self._ask_attach(rank, lambda reply: None)
            self.disconnect(rank)
        elif rank.phase is Phase.GREETING:
            self._attach(rank)

    def _attach(self, rank: Rank) -> None:
        change_phase(self._core, rank, Signal.READY)
        self._limit(rank, "attach")
        self._ask_attach(rank, partial(self._attached, rank))

    def _limit(self, rank: Rank, command: str) -> None:
        limit = self._core.settings.silence_timeout
        fail = partial(self._outcome.failed, rank, f"no answer to {command}")
        rank.timer = self._core.after(limit, fail)

    def _ask_attach(self, rank: Rank, then: Callable[[Reply], None]) -> None:
        arguments = arguments_for(self._core, rank, self._core.flow.arguments)
        arguments = {**arguments, **rank.attach_overrides}
        arguments.setdefault("subProcess", False)
        if self._core.settings.redirect_output:
            arguments.setdefault("redirectOutput", True)
        if self._core.settings.key and not rank.connection.direct:
            arguments[KEY] = self._key_of(rank)
        to_ranks.ask(self._core, rank, "attach", arguments, then, to_ranks.NO_DEADLINE)

    def _key_of(self, rank: Rank) -> str:
        """Of this process alone: two ranks at one port must not take each other's place."""
        connection = rank.connection
        if not connection.key:
            child = rank.endpoint.pid if rank.main else None
            text = f"{self._core.settings.key} {rank.rank_id} {child}"
            connection.key = sha256(text.encode()).hexdigest()
        return connection.key

    def initialized(self, rank: Rank) -> None:
        """The rank's `initialized` event: patch it, give it its breakpoints, let it run on."""
        if rank.phase is not Phase.ATTACHING:
            return
        if problem := patching.too_old(rank.debugpy):
            self._outcome.refused(rank, problem)
            return
        change_phase(self._core, rank, Signal.INITIALIZED)
        if rank.main:
            examined = partial(self._examined, rank)
            to_ranks.evaluate(self._core, rank, IS_TRACKER, str, examined)
        patching.patch(self._core, rank)
        if not rank.main:
            self.configure(rank)

    def _examined(self, child: Rank, said: str | None, reply: Reply) -> None:
        if child.phase is Phase.CONFIGURING:
            self._outcome.examined(child, is_tracker=said == YES)

    def configure(self, rank: Rank) -> None:
        """The rank takes breakpoints; it runs on once the clients have configured."""
        self._watcher.configuring(rank)
        if self._core.flow.configured or not self._core.flow.wanted:
            self.start(rank)

    def start(self, rank: Rank) -> None:
        """Patch it before it may start a child: one that comes earlier would hang."""
        change_phase(self._core, rank, Signal.CONFIGURED)
        self._limit(rank, "configurationDone")
        link = rank.link

        def answered() -> None:
            if rank.link == link:
                self.run_on(rank)

        wait = partial(to_ranks.when_answered, self._core, rank, "evaluate")  # with a deadline each
        if prints_values(rank.debugpy):  # which is patched in two steps
            wait(partial(wait, answered))
        else:
            wait(answered)

    def run_on(self, rank: Rank) -> None:
        """Once; a rank that is left meanwhile has been told already."""
        if not rank.connection.runs_on and rank.link is not None:
            rank.connection.runs_on = True
            then = partial(self._done, rank)
            # Of others `attach` tells whether they run.
            limit = None if rank.connection.direct else to_ranks.NO_DEADLINE
            to_ranks.ask(self._core, rank, "configurationDone", {}, then, limit)

    def _done(self, rank: Rank, reply: Reply) -> None:
        """Whose adapter we are: it answers `attach` at once, and this when it runs on."""
        if rank.connection.direct and rank.phase is Phase.STARTING:
            if reply.ok:
                self.runs(rank)
            elif rank.link is not None:
                self._outcome.failed(rank, reply.problem)

    def _attached(self, rank: Rank, reply: Reply) -> None:
        if reply.ok and rank.main and rank.phase is Phase.ATTACHING:
            # debugpy's answer for a process that it does not know any more
            self._outcome.ended(rank)
        elif reply.ok:
            if not rank.connection.direct:
                self.runs(rank)
        elif not reply.no_reply_reason and rank.phase.linked and not rank.phase.leaving:
            self._outcome.failed(rank, _why_refused(reply))

    def runs(self, rank: Rank) -> None:
        """It is attached, as the answer says, or a stop that has overtaken the answer."""
        if rank.phase is Phase.STARTING:
            change_phase(self._core, rank, Signal.ATTACHED)
            rank.attempts, rank.connection.key, rank.begun = 0, "", rank.process_now
            self._outcome.attached(rank)

    # How a rank is left: it runs on, and its connection ends politely.
    #
    # That is `disconnect`, its answer, and only then the end of the connection. An adapter that is
    # left before `attach` closes its port for ever (measured), so a handshake that has begun goes
    # on as far as that.

    def leave(self, rank: Rank) -> None:
        """Let it run on, and disconnect as soon as that does no harm."""
        was_live, stop = rank.phase.live, rank.stop
        # A child that was never told to run waits for ever, and so does who is released.
        released = rank.after_leaving is not AfterLeaving.RETURN
        runs_on = rank.phase in (Phase.STARTING, Phase.LIVE) or (
            rank.phase is Phase.CONFIGURING and (rank.main is not None or released)
        )
        change_phase(self._core, rank, Signal.LEAVE)
        if runs_on:
            self.run_on(rank)
        if stop is not None and stop.reason == "exception":
            # Left alone there, a rank takes it for a broken tunnel and is held for the next client.
            to_ranks.ask(
                self._core, rank, "continue", {"threadId": stop.thread}, lambda reply: None
            )
        self._watcher.lost(rank, was_live)
        if was_live and self._core.flow.debugs_children:  # no client is there for its next child
            patching.free_children(self._core, rank)
        if rank.phase is Phase.LEAVING_EARLY:
            self.await_adapter(rank)
        else:
            self.disconnect(rank)

    def disconnect(self, rank: Rank) -> None:
        """Wait for evaluates: one answered after `disconnect` ends debugpy's adapter (measured).

        Unless the rank's pydevd is patched not to answer a client that has left.
        """
        if rank.phase is Phase.LEAVING_EARLY:
            change_phase(self._core, rank, Signal.LEAVE)
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
            self._outcome.left(rank)


@lru_cache(maxsize=MAX_OFFERS)
def _known_offers(said: bytes) -> Body:
    """Return what a rank offers: the same object for ranks that say the same."""
    return offers_of(plain(Raw(said)))


def _why_refused(reply: Reply) -> str:
    return BUSY if ALREADY_DEBUGGED in reply.message else reply.problem
