"""Routes of all requests of clients: one row each, complete against the DAP schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from dap_mux.engine.barriers.barriers import Barriers
from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.clients.attach import ClientAttach
from dap_mux.engine.clients.client_inputs import ClientLeave
from dap_mux.engine.clients.lease import Lease
from dap_mux.engine.job_insight.comm_modes import CommModes
from dap_mux.engine.messages.requests import STEPS_BACK, Handler, Requests, Route
from dap_mux.engine.ranks.patching import DebuggerProperties
from dap_mux.engine.session.session_end import JobRestart
from dap_mux.engine.session.session_requests import AllBreakpoints, SessionRequests
from dap_mux.engine.state.rank import BarrierRound, Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View
from dap_mux.engine.stops.control import Control, StopWaiters
from dap_mux.engine.values.inspect import Inspector
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.protocol import arguments as dap
from dap_mux.pure.protocol import types as own

if TYPE_CHECKING:
    from dap_mux.engine.debug_console.completions import ConsoleCompletions
    from dap_mux.engine.debug_console.evaluate import Evaluation
    from dap_mux.engine.debug_console.merged_values import Values
    from dap_mux.engine.job_insight.gather_evidence import (
        EvidenceGatherer,
        StackTrees,
        Why,
    )
    from dap_mux.engine.pdb.cast import Cast
    from dap_mux.engine.session.groups import Groups
    from dap_mux.engine.values.arrays import Arrays
    from dap_mux.engine.values.fan_out import Compare, FanOutEvaluator


class Parts:
    """The parts of the engine that answer requests.

    `Engine` makes the first of them. The others are made for the first request that needs them:
    those that evaluate in many ranks, and that read what users type. An editor waits for a session
    to start, and what these import is an eighth of a session's modules.
    """

    core: SessionState
    view: View
    lease: Lease
    attach: ClientAttach
    leave: ClientLeave
    job: JobRestart
    barriers: Barriers
    breakpoints: Breakpoints
    edits: BreakpointEdits
    all_breakpoints: AllBreakpoints
    control: Control
    stop_waiters: StopWaiters
    inspector: Inspector
    meshes: Meshes
    properties: DebuggerProperties
    commands: SessionRequests
    comm_modes: CommModes
    _requests: Requests[Parts]

    @cached_property
    def cast(self) -> Cast:
        """`cast`: a command of pdb's in many ranks."""
        from dap_mux.engine.pdb.cast import Cast

        return Cast(
            self.core, self.meshes, self._fan_out, self.stop_waiters, self.control, self.edits
        )

    @cached_property
    def compare(self) -> Compare:
        """`compare`: an expression in many ranks."""
        from dap_mux.engine.values.fan_out import Compare

        return Compare(self.core, self._fan_out, self.meshes)

    @cached_property
    def arrays(self) -> Arrays:
        """`array`: the cells of a tensor or array."""
        from dap_mux.engine.values.arrays import Arrays

        return Arrays(self.core, self._fan_out, self.meshes)

    @cached_property
    def stacks(self) -> StackTrees:
        """`stacks`: all ranks' stacks as one tree."""
        from dap_mux.engine.job_insight.gather_evidence import StackTrees

        return StackTrees(self.core, self.meshes)

    @cached_property
    def why(self) -> Why:
        """`why`: what keeps the job from moving on."""
        from dap_mux.engine.job_insight.gather_evidence import Why
        from dap_mux.engine.job_insight.slow_ranks import SlowRanks

        return Why(self.core, self.meshes, self.evidence, SlowRanks(self.core).look)

    @cached_property
    def evidence(self) -> EvidenceGatherer:
        """Looks at what ranks do, from inside and from outside."""
        from dap_mux.engine.job_insight.gather_evidence import EvidenceGatherer

        return EvidenceGatherer(self.core)

    def tell_missing(self, round: BarrierRound, item: Breakpoint) -> None:
        """Tell clients who is missing at a barrier."""
        from dap_mux.engine.barriers.differ import tell_missing

        tell_missing(self.core, round, item)

    def compare_values(self, round: BarrierRound, item: Breakpoint, ranks: list[Rank]) -> None:
        """Compare the ranks at a differ breakpoint."""
        from dap_mux.engine.barriers.differ import compare_values

        compare_values(self.core, self.barriers, round, item, ranks)

    @cached_property
    def groups(self) -> Groups:
        """`groups`: rank sets with names."""
        from dap_mux.engine.session.groups import Groups

        return Groups(self.core, self.meshes, self.edits)

    @cached_property
    def evaluation(self) -> Evaluation:
        """`evaluate`, with the debug console's commands."""
        from dap_mux.engine.debug_console.console import Console
        from dap_mux.engine.debug_console.evaluate import Evaluation
        from dap_mux.engine.debug_console.merged_values import HoverEvaluator
        from dap_mux.engine.values.across_ranks import AcrossRanks

        core, fan_out, inspector = self.core, self._fan_out, self.inspector
        console = Console(core, self.view, self.meshes, self._values, self._requests.on_behalf)
        hovers = HoverEvaluator(core, inspector, fan_out, self._values)
        across = AcrossRanks(core, inspector, fan_out)
        return Evaluation(core, inspector, console.call, self._values, hovers, across)

    @cached_property
    def completions(self) -> ConsoleCompletions:
        """`completions` in a debug console."""
        from dap_mux.engine.debug_console.completions import ConsoleCompletions

        return ConsoleCompletions(self.core, self.inspector, self._values)

    @cached_property
    def _values(self) -> Values:
        from dap_mux.engine.debug_console.merged_values import AggregateVariables, Values

        trees = AggregateVariables(self.core)
        return Values(self.core, self._fan_out, self.meshes, trees)

    @cached_property
    def _fan_out(self) -> FanOutEvaluator:
        from dap_mux.engine.values.fan_out import FanOutEvaluator

        return FanOutEvaluator(self.core, self.stop_waiters)


def _owner(parts: Parts) -> Handler:
    return parts.inspector.to_owner


def _owner_or_focus(parts: Parts) -> Handler:
    return parts.inspector.to_owner_or_focus


_REFUSED: Final[Route[Parts]] = Route(None)

# A new request is one row: the method that handles it, the arguments that it may have, and the
# capabilities that it lets us offer. Arguments are checked before the handler is called
# (`messages.requests`). Capabilities are computed from these rows and from what the ranks offer.
ROUTES: Final[Mapping[str, Route[Parts]]] = {
    # the session itself
    "initialize": Route(
        lambda parts: parts.attach.initialize, dap.InitializeArguments, before_attach=True
    ),
    "attach": Route(lambda parts: parts.attach.attach, dap.AttachArguments, before_attach=True),
    "launch": Route(lambda parts: parts.attach.attach, dap.AttachArguments, before_attach=True),
    "configurationDone": Route(lambda parts: parts.attach.configuration_done, before_attach=True),
    "disconnect": Route(
        lambda parts: parts.leave.disconnect,
        dap.DisconnectArguments,
        ("supportTerminateDebuggee",),
        before_attach=True,
        observers=True,
    ),
    "terminate": Route(
        lambda parts: parts.leave.terminate,
        dap.TerminateArguments,
        ("supportsTerminateRequest",),
        moves=True,
    ),
    "restart": Route(
        lambda parts: parts.job.restart,
        own.RestartArguments,
        ("supportsRestartRequest",),
        moves=True,
    ),
    "threads": Route(lambda parts: parts.commands.threads, before_attach=True, observers=True),
    # breakpoints: kept, merged, replayed
    "setBreakpoints": Route(
        lambda parts: parts.breakpoints.set_source,
        dap.SetBreakpointsArguments,
        (
            "supportsConditionalBreakpoints",
            "supportsHitConditionalBreakpoints",
            "supportsLogPoints",
        ),
        before_attach=True,
    ),
    "setFunctionBreakpoints": Route(
        lambda parts: parts.breakpoints.set_functions,
        dap.SetFunctionBreakpointsArguments,
        ("supportsFunctionBreakpoints",),
        before_attach=True,
    ),
    "setExceptionBreakpoints": Route(
        lambda parts: parts.breakpoints.set_exceptions,
        dap.SetExceptionBreakpointsArguments,
        ("supportsExceptionOptions",),
        before_attach=True,
    ),
    # running and stopping: the scope
    "continue": Route(lambda parts: parts.control.continue_, dap.ContinueArguments, moves=True),
    "pause": Route(lambda parts: parts.control.pause, dap.PauseArguments, moves=True),
    "next": Route(lambda parts: parts.control.step, dap.StepArguments, moves=True),
    "stepIn": Route(lambda parts: parts.control.step, dap.StepInArguments, moves=True),
    "stepOut": Route(lambda parts: parts.control.step, dap.StepArguments, moves=True),
    "stepBack": Route(
        lambda parts: parts.job.step_back, dap.StepArguments, (STEPS_BACK,), moves=True
    ),
    "reverseContinue": Route(lambda parts: parts.job.step_back, dap.StepArguments, moves=True),
    # data of one rank: the handle's owner
    "stackTrace": Route(
        _owner, dap.StackTraceArguments, ("supportsDelayedStackTraceLoading",), observers=True
    ),
    "scopes": Route(
        lambda parts: parts.evaluation.across_ranks.scopes,
        dap.FrameArguments,
        observers=True,
    ),
    "variables": Route(
        lambda parts: parts.evaluation.variables,
        dap.VariablesArguments,
        ("supportsValueFormattingOptions", "supportsClipboardContext"),
        observers=True,
    ),
    "setVariable": Route(
        lambda parts: parts.evaluation.set_variable,
        dap.SetVariableArguments,
        ("supportsSetVariable",),
    ),
    "setExpression": Route(_owner_or_focus, dap.SetExpressionArguments, ("supportsSetExpression",)),
    "source": Route(lambda parts: parts.inspector.source, dap.SourceArguments, observers=True),
    "stepInTargets": Route(_owner, dap.FrameArguments, ("supportsStepInTargetsRequest",)),
    "goto": Route(_owner, dap.GotoArguments, moves=True),
    "exceptionInfo": Route(
        lambda parts: parts.inspector.exception_info,
        dap.ThreadArguments,
        ("supportsExceptionInfoRequest",),
        observers=True,
    ),
    "completions": Route(
        lambda parts: parts.completions.completions,
        dap.CompletionsArguments,
        ("supportsCompletionsRequest",),
    ),
    "evaluate": Route(
        lambda parts: parts.evaluation.evaluate,
        dap.EvaluateArguments,
        ("supportsEvaluateForHovers",),
        observers=True,
    ),
    "gotoTargets": Route(
        _owner_or_focus, dap.GotoTargetsArguments, ("supportsGotoTargetsRequest",)
    ),
    "modules": Route(
        _owner_or_focus, dap.ModulesArguments, ("supportsModulesRequest",), observers=True
    ),
    "setDebuggerProperty": Route(
        lambda parts: parts.properties.set,
        dap.SetDebuggerPropertyArguments,
        ("supportsDebuggerProperties",),
    ),
    # never forwarded: debugpy leaves some of these unanswered, and its connection dead
    "cancel": _REFUSED,
    "breakpointLocations": _REFUSED,
    "dataBreakpointInfo": _REFUSED,
    "setDataBreakpoints": _REFUSED,
    "setInstructionBreakpoints": _REFUSED,
    "restartFrame": _REFUSED,
    "terminateThreads": _REFUSED,
    "loadedSources": _REFUSED,
    "readMemory": _REFUSED,
    "writeMemory": _REFUSED,
    "disassemble": _REFUSED,
    "locations": _REFUSED,
    # of an adapter to its client, never the other way
    "runInTerminal": _REFUSED,
    "startDebugging": _REFUSED,
    # our own (docs/protocol.md)
    "session": Route(lambda parts: parts.commands.address, observers=True),
    "list": Route(lambda parts: parts.commands.list_ranks, own.ListArguments, observers=True),
    "breakpoints": Route(lambda parts: parts.all_breakpoints.all, observers=True),
    "compare": Route(lambda parts: parts.compare.compare, own.CompareArguments, observers=True),
    "array": Route(lambda parts: parts.arrays.array, own.ArrayArguments, observers=True),
    "stacks": Route(lambda parts: parts.stacks.stacks, own.StacksArguments, observers=True),
    "why": Route(lambda parts: parts.why.why, own.WhyArguments, observers=True),
    "comm": Route(lambda parts: parts.comm_modes.comm, own.CommArguments),
    "focus": Route(lambda parts: parts.commands.focus, own.FocusArguments),
    "scope": Route(lambda parts: parts.commands.scope, own.ValueArguments, observers=True),
    "view": Route(lambda parts: parts.commands.view, own.ValueArguments, observers=True),
    "cast": Route(lambda parts: parts.cast.cast, own.CastArguments, observers=True, moves=True),
    "groups": Route(lambda parts: parts.groups.groups, own.GroupsArguments, observers=True),
    "lease": Route(lambda parts: parts.lease.lease, own.LeaseArguments, observers=True),
    "release": Route(lambda parts: parts.commands.release, own.RanksArguments, moves=True),
    "drop": Route(lambda parts: parts.commands.drop, own.RanksArguments, moves=True),
}

OFFERED: Final = tuple(name for route in ROUTES.values() for name in route.capabilities)
