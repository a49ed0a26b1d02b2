"""How a rank is attached: initialize, attach, initialized, breakpoints, configurationDone.

No `attach` before the adapter has met its debuggee (K3), and none left out once `initialize` is
sent: an adapter that is left before `attach` closes its port for ever (measured). Children are
kept out of the debugger before the rank runs on (K5).
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.messages import to_ranks
from dap_mux.engine.messages.capabilities import offers_of
from dap_mux.engine.ranks import debugpy_versions
from dap_mux.engine.ranks.attach_expression import CURE, CURE_AND_DEBUG_CHILDREN, IS_TRACKER, YES
from dap_mux.engine.ranks.connector import Links
from dap_mux.engine.source_files.path_mappings import arguments_for, paths_of
from dap_mux.engine.source_files.probe import WHERE
from dap_mux.engine.state.model import Body, Rank, Reply
from dap_mux.engine.state.phases import Phase, Signal
from dap_mux.pathmap import HERE
from dap_mux.protocol.messages import plain

ABOUT_US: Final[Body] = {
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


MAY_WAIT: Final = "child processes may wait for the debugger"
TAKEN: Final = "already being debugged"  # debugpy's words (R4)
BUSY: Final = (
    f"{TAKEN}: by another debugger, or still over a connection that broke "
    "(debugpy notices within 20 s); tried again until it is free"
)


class Handshake(Links):
    """The steps from a connection to a rank that is live."""

    def up(self, rank: Rank) -> None:
        """The TCP connection is there. From now on it is never just closed (K2)."""
        silence, rank.refused = self._core.settings.silence_timeout, ""
        if rank.phase is not Phase.LEAVING:
            self._to(rank, Signal.UP)
        self._initialize(rank, silence)
        # In one write where that is safe: who ends in between would cost the rank its port.
        if rank.adapter_ready and rank.phase is Phase.GREETING:
            self._attach(rank)

    def _initialize(self, rank: Rank, limit: float) -> None:
        to_ranks.ask(
            self._core, rank, "initialize", ABOUT_US, lambda r: self._initialized(rank, r), limit
        )

    def _initialized(self, rank: Rank, reply: Reply) -> None:
        greeting = rank.phase is Phase.GREETING
        if not greeting and rank.phase is not Phase.ATTACHING and not rank.leaving_early:
            return
        if reply.ok:
            rank.offers = offers_of(plain(reply.body))
            if greeting or rank.leaving_early:
                self._await_adapter(rank)
        elif rank.leaving_early:
            self._say_goodbye(rank)
        elif rank.link is not None:
            self._give_up(rank, reply.problem)

    def _await_adapter(self, rank: Rank) -> None:
        if not rank.adapter_ready:
            rank.timer = self._core.after(
                self._core.settings.greeting_timeout, lambda: self.adapter_is_ready(rank)
            )
        self._attach_when_ready(rank)

    def adapter_is_ready(self, rank: Rank) -> None:
        """The adapter has met its debuggee (it lists its internal socket), or never says so."""
        rank.adapter_ready = True
        self._attach_when_ready(rank)

    def _attach_when_ready(self, rank: Rank) -> None:
        if not rank.adapter_ready or rank.offers is None:
            return
        if rank.leaving_early:
            self._ask_attach(rank, lambda reply: None)
            self._say_goodbye(rank)
        elif rank.phase is Phase.GREETING:
            self._attach(rank)

    def _attach(self, rank: Rank) -> None:
        self._to(rank, Signal.READY)
        rank.timer = self._core.after(
            self._core.settings.silence_timeout, lambda: self._give_up(rank, "no answer to attach")
        )
        self._ask_attach(rank, lambda reply: self._attached(rank, reply))

    def _ask_attach(self, rank: Rank, then: to_ranks.Then) -> None:
        arguments = {**arguments_for(self._core, rank, self.arguments), **rank.called}
        arguments.setdefault("subProcess", False)
        if self._core.settings.redirect_output:
            arguments.setdefault("redirectOutput", True)
        to_ranks.ask(self._core, rank, "attach", arguments, then, to_ranks.NO_DEADLINE)

    def initialized(self, rank: Rank) -> None:
        """The rank's `initialized` event: cure it, give it its breakpoints, let it run on."""
        if rank.phase is not Phase.ATTACHING:
            return
        if problem := debugpy_versions.too_old(rank.debugpy):
            self._refuse(rank, problem)
            return
        self._to(rank, Signal.INITIALIZED)
        if rank.main:
            self._evaluate(rank, IS_TRACKER, self._examined)
        if debugpy_versions.prints_values(rank.debugpy):
            self._evaluate(rank, debugpy_versions.ANSWER_WITHOUT_FRAME, lambda rank, reply: None)
        if warning := debugpy_versions.old(rank.debugpy):
            self._core.warn("rank", warning, rank)
        self._evaluate(rank, self._cure_for(rank), self._cured)
        if not rank.main and any(remote == HERE for _, remote in paths_of(self._core, rank).roots):
            self._evaluate(rank, WHERE, self._located)
        if not rank.main:
            self._configure(rank)

    def _refuse(self, rank: Rank, problem: str) -> None:
        """It runs on as it was found; a client may have it attached again."""
        self._core.warn("rank", problem, rank)
        rank.refused, rank.releasing = problem, True
        self._to(rank, Signal.LEAVE)
        self._watcher.lost(rank, False)
        self._say_goodbye(rank)

    def _cure_for(self, rank: Rank) -> str:
        if not self.debugs_children:
            return CURE
        if rank.endpoint.dials:  # a child has no way to prove the token
            self._core.warn("rank", "its child processes run undebugged: it calls us", rank)
            return CURE
        return CURE_AND_DEBUG_CHILDREN

    def _examined(self, child: Rank, reply: Reply) -> None:
        """A child says what it is (`Children`)."""
        raise NotImplementedError

    def _configure(self, rank: Rank) -> None:
        self._watcher.configuring(rank)
        if self._core.flow.configured:
            self._start(rank)

    def _evaluate(self, rank: Rank, expression: str, then: object) -> None:
        assert callable(then)
        arguments = {"expression": expression, "context": "watch"}
        to_ranks.ask(self._core, rank, "evaluate", arguments, lambda reply: then(rank, reply))

    def _cured(self, rank: Rank, reply: Reply) -> None:
        """Verified by what the socket itself says; where it fails the rank just stays slow."""
        told = str(plain(reply.body).get("result")) if reply.ok else ""
        cured, children, rank.process = f"{told}  ".split(" ", 2)
        rank.process = rank.process.strip()
        rank.cured = cured == YES
        if not rank.cured:
            self._core.warn("rank", "TCP_NODELAY could not be set; 44 ms a request", rank)
        if children != YES:
            what = "child processes may go undebugged" if self.debugs_children else MAY_WAIT
            self._core.warn("rank", what if reply.ok else f"{what}: {reply.problem}", rank)

    def _located(self, rank: Rank, reply: Reply) -> None:
        """Where the rank runs, which is what a `remoteRoot` of "." means."""
        folder = plain(reply.body).get("result") if reply.ok else None
        if isinstance(folder, str):
            self._core.folders[rank.rank_id] = folder

    def _is_live(self, rank: Rank) -> None:
        self._watcher.live(rank)

    def _start(self, rank: Rank) -> None:
        """What is evaluated in it comes first: a child of it that comes before would hang (K5)."""
        self._to(rank, Signal.CONFIGURED)
        rank.timer = self._core.after(
            self._core.settings.silence_timeout,
            lambda: self._give_up(rank, "no answer to configurationDone"),
        )
        link = rank.link

        def answered() -> None:
            if rank.link == link:
                self._run_on(rank)

        limit = self._core.settings.request_timeout
        to_ranks.when_answered(self._core, rank, "evaluate", answered, limit)

    def _run_on(self, rank: Rank) -> None:
        """Once; a rank that is left meanwhile has been told already."""
        if not rank.runs_on and rank.link is not None:
            rank.runs_on = True
            to_ranks.ask(
                self._core, rank, "configurationDone", {}, lambda reply: self._done(rank, reply)
            )

    def _done(self, rank: Rank, reply: Reply) -> None:
        """Whose adapter we are: it answers `attach` at once, and this when it runs on."""
        if rank.endpoint.dials and rank.phase is Phase.STARTING:
            if reply.ok:
                self.runs(rank)
            elif rank.link is not None:
                self._give_up(rank, reply.problem)

    def _attached(self, rank: Rank, reply: Reply) -> None:
        if reply.ok and rank.main and rank.phase is Phase.ATTACHING:
            self.ended(rank)  # debugpy's answer for a process that it does not know any more
        elif reply.ok:
            if not rank.endpoint.dials:
                self.runs(rank)
        elif not reply.missing and rank.phase.linked and rank.phase is not Phase.LEAVING:
            self._give_up(rank, BUSY if TAKEN in reply.message else reply.problem)

    def runs(self, rank: Rank) -> None:
        """It is attached, as the answer says, or a stop that has overtaken the answer."""
        if rank.phase is Phase.STARTING:
            self._to(rank, Signal.ATTACHED)
            rank.attempts = 0
            self._is_live(rank)
