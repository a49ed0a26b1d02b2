"""`cast`: one command to exactly the ranks named; their answers folded, the missing named.

The commands are pdb's (`pdb.grammar`), mapped to DAP: `value_commands` look, `step_commands` move,
`breakpoint_commands` are for breakpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Final

from msgspec import Struct

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.pdb.breakpoint_commands import BreakpointCommands
from dap_mux.engine.pdb.command import Invocation, Parsed, Run, read
from dap_mux.engine.pdb.step_commands import StepCommands
from dap_mux.engine.pdb.value_commands import Displays, ValueCommands
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.stops.aggregate import STACK_TIMEOUT
from dap_mux.engine.stops.control import Control, StopWaiters
from dap_mux.engine.values.fan_out import FanOutEvaluator
from dap_mux.engine.values.meshes import Meshes
from dap_mux.engine.values.replies import Answers, handle_of
from dap_mux.pure.errors import UsageError
from dap_mux.pure.insight.compare import folded
from dap_mux.pure.protocol.types import CastArguments
from dap_mux.pure.protocol.validation import typed

MAX_TIMEOUT_S: Final = 86_400.0


class Cast(Struct, eq=False, dict=True):
    """The engine's part that answers `cast`."""

    _core: SessionState
    _meshes: Meshes
    _fan_out: FanOutEvaluator
    _stop_waiters: StopWaiters
    _control: Control
    _edits: BreakpointEdits

    @cached_property
    def _commands(self) -> Mapping[str, Run]:
        displays = Displays()
        return {
            **ValueCommands(displays).commands,
            **StepCommands(self._stop_waiters, self._control, self._edits, displays).commands,
            **BreakpointCommands(self._edits).commands,
        }

    def cast(self, request: ClientRequest) -> None:
        """`cast`."""
        arguments = typed(request.arguments, CastArguments)
        if not 0 < arguments.timeout <= MAX_TIMEOUT_S:
            raise UsageError(
                f"timeout must be greater than 0 and at most {MAX_TIMEOUT_S:.0f} seconds"
            )
        parsed = read(arguments.command)
        then = partial(self._begin, request, parsed, arguments.timeout)
        self._meshes.choose(request, arguments.ranks, then)

    def _begin(
        self, request: ClientRequest, parsed: Parsed, timeout: float, ranks: list[Rank]
    ) -> None:
        then = partial(self._answer, request)
        invocation = Invocation(
            self._core, self._fan_out, request.client, ranks, *parsed, timeout, then
        )
        self._when_settled(invocation, partial(self._carry_out, request, invocation))

    def _when_settled(self, invocation: Invocation, then: Callable[[], None]) -> None:
        """Wait for stops whose places are on their way: a moment, once."""
        unsettled = [rank for rank in invocation.ranks if rank.stop and not rank.stop.settled]
        ids = (rank.rank_id for rank in unsettled)
        join = Join(self._core, ids, lambda missing: then(), STACK_TIMEOUT)
        for rank in unsettled:
            self._stop_waiters.wait(rank, lambda rank: join.arrive(rank.rank_id))

    def _carry_out(self, request: ClientRequest, invocation: Invocation) -> None:
        try:
            self._commands[invocation.command](invocation)
        except UsageError as error:
            to_clients.refuse(self._core, request, str(error))

    def _answer(self, request: ClientRequest, answers: Answers) -> None:
        """Equal answers are folded, most ranks first."""
        core, label = self._core, partial(named, self._core)
        values = {id: (answer.value, answer.type) for id, answer in answers.values.items()}
        body = folded(
            values, answers.errors, label, lambda rank: handle_of(core, rank, answers.values[rank])
        )
        answered = answers.in_main & answers.values.keys()
        body |= {"missing": label(answers.missing), "inMain": label(answered)}
        to_clients.respond(core, request, body)
