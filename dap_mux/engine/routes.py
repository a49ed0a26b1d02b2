"""What happens to each request of a client: one row each, complete against the DAP schema.

A new request is one row: who answers, and which capability it makes us offer. Capabilities are
computed from these rows and from what the ranks offer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Route:
    """`handler` is `part.method` of the engine, or None: refused at once, never forwarded."""

    handler: str | None
    capabilities: tuple[str, ...] = ()
    before_attach: bool = False  # an initialized client may send it before it attaches
    observers: bool = False  # an observer may send it


OWNER: Final = "inspector.to_owner"
OWNER_OR_FOCUS: Final = "inspector.to_owner_or_focus"
REFUSED: Final = Route(None)

ROUTES: Final[Mapping[str, Route]] = {
    # the session itself
    "initialize": Route("clients.initialize", before_attach=True),
    "attach": Route("clients.attach", before_attach=True),
    "launch": Route("clients.attach", before_attach=True),
    "configurationDone": Route("clients.configuration_done", before_attach=True),
    "disconnect": Route(
        "clients.disconnect", ("supportTerminateDebuggee",), before_attach=True, observers=True
    ),
    "terminate": Route("clients.terminate", ("supportsTerminateRequest",)),
    "restart": Route("job.restart", ("supportsRestartRequest",)),
    "threads": Route("clients.threads", before_attach=True, observers=True),
    # breakpoints: kept, merged, replayed
    "setBreakpoints": Route(
        "breakpoints.set_source",
        (
            "supportsConditionalBreakpoints",
            "supportsHitConditionalBreakpoints",
            "supportsLogPoints",
        ),
        before_attach=True,
    ),
    "setFunctionBreakpoints": Route(
        "breakpoints.set_functions", ("supportsFunctionBreakpoints",), before_attach=True
    ),
    "setExceptionBreakpoints": Route(
        "breakpoints.set_exceptions", ("supportsExceptionOptions",), before_attach=True
    ),
    # running and stopping: the scope
    "continue": Route("control.continue_"),
    "pause": Route("control.pause"),
    "next": Route("control.step"),
    "stepIn": Route("control.step"),
    "stepOut": Route("control.step"),
    # data of one rank: the handle's owner
    "stackTrace": Route(OWNER, ("supportsDelayedStackTraceLoading",), observers=True),
    "scopes": Route(OWNER, observers=True),
    "variables": Route(
        "evaluation.variables",
        ("supportsValueFormattingOptions", "supportsClipboardContext"),
        observers=True,
    ),
    "setVariable": Route("evaluation.set_variable", ("supportsSetVariable",)),
    "setExpression": Route(OWNER_OR_FOCUS, ("supportsSetExpression",)),
    "source": Route("inspector.source", observers=True),
    "stepInTargets": Route(OWNER, ("supportsStepInTargetsRequest",)),
    "goto": Route(OWNER),
    "exceptionInfo": Route(
        "inspector.exception_info", ("supportsExceptionInfoRequest",), observers=True
    ),
    "completions": Route("evaluation.completions", ("supportsCompletionsRequest",)),
    "evaluate": Route("evaluation.evaluate", ("supportsEvaluateForHovers",), observers=True),
    "gotoTargets": Route(OWNER_OR_FOCUS, ("supportsGotoTargetsRequest",)),
    "modules": Route(OWNER_OR_FOCUS, ("supportsModulesRequest",), observers=True),
    "setDebuggerProperty": Route(OWNER_OR_FOCUS, ("supportsDebuggerProperties",)),
    # never forwarded: debugpy leaves some of these unanswered, and its connection dead (FACTS)
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
    "list": Route("commands.list_ranks", observers=True),
    "breakpoints": Route("all_breakpoints.all", observers=True),
    "compare": Route("comparing.compare", observers=True),
    "focus": Route("commands.focus"),
    "scope": Route("commands.scope", observers=True),
    "view": Route("commands.view", observers=True),
    "cast": Route("casting.cast", observers=True),
    "groups": Route("groups.groups", observers=True),
    "release": Route("commands.release"),
    "drop": Route("commands.drop"),
}

OFFERED: Final = tuple(name for route in ROUTES.values() for name in route.capabilities)
