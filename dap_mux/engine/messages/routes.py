"""What happens to each request of a client: one row each, complete against the DAP schema.

A new request is one row: who answers, which arguments it may have, and which capability it makes us
offer. Arguments are checked before the handler is called (`requests`). Capabilities are computed
from these rows and from what the ranks offer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from dap_mux.protocol import arguments as dap
from dap_mux.protocol import types as own


@dataclass(frozen=True)
class Route:
    """`handler` is `part.method` of the engine, or None: refused at once, never forwarded."""

    handler: str | None
    arguments: type[Struct] = dap.NoArguments
    capabilities: tuple[str, ...] = ()
    before_attach: bool = False  # an initialized client may send it before it attaches
    observers: bool = False  # an observer may send it


OWNER: Final = "inspector.to_owner"
OWNER_OR_FOCUS: Final = "inspector.to_owner_or_focus"
REFUSED: Final = Route(None)

ROUTES: Final[Mapping[str, Route]] = {
    # the session itself
    "initialize": Route("clients.initialize", dap.InitializeArguments, before_attach=True),
    "attach": Route("clients.attach", dap.AttachArguments, before_attach=True),
    "launch": Route("clients.attach", dap.AttachArguments, before_attach=True),
    "configurationDone": Route("clients.configuration_done", before_attach=True),
    "disconnect": Route(
        "clients.disconnect",
        dap.DisconnectArguments,
        ("supportTerminateDebuggee",),
        before_attach=True,
        observers=True,
    ),
    "terminate": Route("clients.terminate", dap.TerminateArguments, ("supportsTerminateRequest",)),
    "restart": Route("job.restart", dap.NoArguments, ("supportsRestartRequest",)),
    "threads": Route("clients.threads", before_attach=True, observers=True),
    # breakpoints: kept, merged, replayed
    "setBreakpoints": Route(
        "breakpoints.set_source",
        dap.SetBreakpointsArguments,
        (
            "supportsConditionalBreakpoints",
            "supportsHitConditionalBreakpoints",
            "supportsLogPoints",
        ),
        before_attach=True,
    ),
    "setFunctionBreakpoints": Route(
        "breakpoints.set_functions",
        dap.SetFunctionBreakpointsArguments,
        ("supportsFunctionBreakpoints",),
        before_attach=True,
    ),
    "setExceptionBreakpoints": Route(
        "breakpoints.set_exceptions",
        dap.SetExceptionBreakpointsArguments,
        ("supportsExceptionOptions",),
        before_attach=True,
    ),
    # running and stopping: the scope
    "continue": Route("control.continue_", dap.ContinueArguments),
    "pause": Route("control.pause", dap.PauseArguments),
    "next": Route("control.step", dap.StepArguments),
    "stepIn": Route("control.step", dap.StepInArguments),
    "stepOut": Route("control.step", dap.StepArguments),
    # data of one rank: the handle's owner
    "stackTrace": Route(
        OWNER, dap.StackTraceArguments, ("supportsDelayedStackTraceLoading",), observers=True
    ),
    "scopes": Route(OWNER, dap.FrameArguments, observers=True),
    "variables": Route(
        "evaluation.variables",
        dap.VariablesArguments,
        ("supportsValueFormattingOptions", "supportsClipboardContext"),
        observers=True,
    ),
    "setVariable": Route(
        "evaluation.set_variable", dap.SetVariableArguments, ("supportsSetVariable",)
    ),
    "setExpression": Route(OWNER_OR_FOCUS, dap.SetExpressionArguments, ("supportsSetExpression",)),
    "source": Route("inspector.source", dap.SourceArguments, observers=True),
    "stepInTargets": Route(OWNER, dap.FrameArguments, ("supportsStepInTargetsRequest",)),
    "goto": Route(OWNER, dap.GotoArguments),
    "exceptionInfo": Route(
        "inspector.exception_info",
        dap.ExceptionInfoArguments,
        ("supportsExceptionInfoRequest",),
        observers=True,
    ),
    "completions": Route(
        "evaluation.completions", dap.CompletionsArguments, ("supportsCompletionsRequest",)
    ),
    "evaluate": Route(
        "evaluation.evaluate", dap.EvaluateArguments, ("supportsEvaluateForHovers",), observers=True
    ),
    "gotoTargets": Route(OWNER_OR_FOCUS, dap.GotoTargetsArguments, ("supportsGotoTargetsRequest",)),
    "modules": Route(
        OWNER_OR_FOCUS, dap.ModulesArguments, ("supportsModulesRequest",), observers=True
    ),
    "setDebuggerProperty": Route(
        "properties.set", dap.SetDebuggerPropertyArguments, ("supportsDebuggerProperties",)
    ),
    # never forwarded: debugpy leaves some of these unanswered, and its connection dead
    "cancel": REFUSED,
    "breakpointLocations": REFUSED,
    "dataBreakpointInfo": REFUSED,
    "setDataBreakpoints": REFUSED,
    "setInstructionBreakpoints": REFUSED,
    "stepBack": REFUSED,
    "reverseContinue": REFUSED,
    "restartFrame": REFUSED,
    "terminateThreads": REFUSED,
    "loadedSources": REFUSED,
    "readMemory": REFUSED,
    "writeMemory": REFUSED,
    "disassemble": REFUSED,
    "locations": REFUSED,
    # of an adapter to its client, never the other way
    "runInTerminal": REFUSED,
    "startDebugging": REFUSED,
    # our own (docs/protocol.md)
    "list": Route("commands.list_ranks", own.ListArguments, observers=True),
    "breakpoints": Route("all_breakpoints.all", observers=True),
    "compare": Route("comparing.compare", own.CompareArguments, observers=True),
    "focus": Route("commands.focus", own.FocusArguments),
    "scope": Route("commands.scope", own.ValueArguments, observers=True),
    "view": Route("commands.view", own.ValueArguments, observers=True),
    "cast": Route("casting.cast", own.CastArguments, observers=True),
    "groups": Route("groups.groups", own.GroupsArguments, observers=True),
    "release": Route("commands.release", own.RanksArguments),
    "drop": Route("commands.drop", own.RanksArguments),
}

OFFERED: Final = tuple(name for route in ROUTES.values() for name in route.capabilities)
