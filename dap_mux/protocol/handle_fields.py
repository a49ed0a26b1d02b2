"""The fields of messages that hold an id of a rank: one literal table.

Source: the DAP schema. A test compares the table with every request, response and event of it, so
messages without ids are listed too, with an empty row. `handle_paths`
explains how a path is written.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from dap_mux.protocol.handle_paths import Field, Fields, Id, IdFault, Kind, Translate, table
from dap_mux.protocol.messages import EMPTY, MessageError

__all__ = [
    "EVENTS",
    "REQUESTS",
    "RESPONSES",
    "Field",
    "Fields",
    "Id",
    "IdFault",
    "Kind",
    "Translate",
    "exchange",
    "rewrite",
]

_parts: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_value: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_ZERO: Final = Raw(b"0")


def rewrite(body: dict[str, Any], fields: Fields, translate: Translate) -> None:
    """Replace in place each id of `body` that `fields` names by `translate(kind, id)`.

    Absent and null ids are left, and so is 0 where it means "none" (variables, source and
    location references). Raises `IdFault` for an id that has not the type DAP gives it.
    """
    fields.walk(body, translate)


def exchange(body: Raw, fields: Fields, translate: Translate) -> Raw:
    """Return `body` with its ids translated as `rewrite` does; {} if it is not an object.

    Only what holds ids is decoded: a long text beside them is copied, byte for byte.
    """
    swapped = False
    try:
        whole = _parts(body) if body else {}
        for name, step in fields.heads.items():
            if name in whole and not (whole[name] == _ZERO and name in fields.zeroes):
                holder = {name: _value(whole[name])}
                step(holder, translate)
                whole[name], swapped = Raw(_encode(holder[name])), True
    except msgspec.ValidationError:
        return EMPTY
    except (msgspec.DecodeError, RecursionError) as error:
        raise MessageError(f"not valid JSON: {error}") from None
    return Raw(_encode(whole)) if swapped else body or EMPTY


_THREAD: Final = {"threadId": Kind.THREAD}
_FRAME: Final = {"frameId": Kind.FRAME}
_VARIABLES: Final = {"variablesReference": Kind.VARIABLES}
_MEMORY: Final = {"memoryReference": Kind.MEMORY}
_SOURCE: Final = {"source.sources*.sourceReference": Kind.SOURCE}
_VALUE: Final = {**_VARIABLES, **_MEMORY, "valueLocationReference": Kind.LOCATION}
_PROGRESS: Final = {"progressId": Kind.PROGRESS}
_BREAKPOINTS: Final = {
    "breakpoints[].id": Kind.BREAKPOINT,
    "breakpoints[].source.sources*.sourceReference": Kind.SOURCE,
    "breakpoints[].instructionReference": Kind.MEMORY,
}

REQUESTS: Final = table(
    {
        "attach": {},
        "breakpointLocations": _SOURCE,
        "cancel": {"requestId": Kind.REQUEST, **_PROGRESS},
        "completions": _FRAME,
        "configurationDone": {},
        "continue": _THREAD,
        "dataBreakpointInfo": {**_VARIABLES, **_FRAME},
        "disassemble": _MEMORY,
        "disconnect": {},
        "evaluate": {**_FRAME, **_SOURCE},
        "exceptionInfo": _THREAD,
        "goto": {**_THREAD, "targetId": Kind.GOTO},
        "gotoTargets": _SOURCE,
        "initialize": {},
        "launch": {},
        "loadedSources": {},
        "locations": {"locationReference": Kind.LOCATION},
        "modules": {},
        "next": _THREAD,
        "pause": _THREAD,
        "readMemory": _MEMORY,
        "restart": {},
        "restartFrame": _FRAME,
        "reverseContinue": _THREAD,
        "runInTerminal": {},
        "scopes": _FRAME,
        "setBreakpoints": _SOURCE,
        "setDataBreakpoints": {"breakpoints[].dataId": Kind.DATA},
        "setExceptionBreakpoints": {},
        "setExpression": _FRAME,
        "setFunctionBreakpoints": {},
        "setInstructionBreakpoints": {"breakpoints[].instructionReference": Kind.MEMORY},
        "setVariable": _VARIABLES,
        "source": {**_SOURCE, "sourceReference": Kind.SOURCE},
        "stackTrace": _THREAD,
        "startDebugging": {},
        "stepBack": _THREAD,
        "stepIn": {**_THREAD, "targetId": Kind.STEP_IN},
        "stepInTargets": _FRAME,
        "stepOut": _THREAD,
        "terminate": {},
        "terminateThreads": {"threadIds[]": Kind.THREAD},
        "threads": {},
        "variables": _VARIABLES,
        "writeMemory": _MEMORY,
    }
)

RESPONSES: Final = table(
    {
        "attach": {},
        "breakpointLocations": {},
        "cancel": {},
        "completions": {},
        "configurationDone": {},
        "continue": {},
        "dataBreakpointInfo": {"dataId": Kind.DATA},
        "disassemble": {"instructions[].location.sources*.sourceReference": Kind.SOURCE},
        "disconnect": {},
        "evaluate": _VALUE,
        "exceptionInfo": {},
        "goto": {},
        "gotoTargets": {
            "targets[].id": Kind.GOTO,
            "targets[].instructionPointerReference": Kind.MEMORY,
        },
        "initialize": {},
        "launch": {},
        "loadedSources": {"sources[].sources*.sourceReference": Kind.SOURCE},
        "locations": _SOURCE,
        "modules": {"modules[].id": Kind.MODULE},
        "next": {},
        "pause": {},
        "readMemory": {},
        "restart": {},
        "restartFrame": {},
        "reverseContinue": {},
        "runInTerminal": {},
        "scopes": {
            "scopes[].variablesReference": Kind.VARIABLES,
            "scopes[].source.sources*.sourceReference": Kind.SOURCE,
        },
        "setBreakpoints": _BREAKPOINTS,
        "setDataBreakpoints": _BREAKPOINTS,
        "setExceptionBreakpoints": _BREAKPOINTS,
        "setExpression": _VALUE,
        "setFunctionBreakpoints": _BREAKPOINTS,
        "setInstructionBreakpoints": _BREAKPOINTS,
        "setVariable": _VALUE,
        "source": {},
        "stackTrace": {
            "stackFrames[].id": Kind.FRAME,
            "stackFrames[].source.sources*.sourceReference": Kind.SOURCE,
            "stackFrames[].instructionPointerReference": Kind.MEMORY,
            "stackFrames[].moduleId": Kind.MODULE,
        },
        "startDebugging": {},
        "stepBack": {},
        "stepIn": {},
        "stepInTargets": {"targets[].id": Kind.STEP_IN},
        "stepOut": {},
        "terminate": {},
        "terminateThreads": {},
        "threads": {"threads[].id": Kind.THREAD},
        "variables": {
            "variables[].variablesReference": Kind.VARIABLES,
            "variables[].memoryReference": Kind.MEMORY,
            "variables[].declarationLocationReference": Kind.LOCATION,
            "variables[].valueLocationReference": Kind.LOCATION,
        },
        "writeMemory": {},
    }
)

EVENTS: Final = table(
    {
        "breakpoint": {
            "breakpoint.id": Kind.BREAKPOINT,
            "breakpoint.source.sources*.sourceReference": Kind.SOURCE,
            "breakpoint.instructionReference": Kind.MEMORY,
        },
        "capabilities": {},
        "continued": _THREAD,
        "exited": {},
        "initialized": {},
        "invalidated": {**_THREAD, "stackFrameId": Kind.FRAME},
        "loadedSource": _SOURCE,
        "memory": _MEMORY,
        "module": {"module.id": Kind.MODULE},
        "output": {**_VARIABLES, **_SOURCE, "locationReference": Kind.LOCATION},
        "process": {},
        "progressEnd": _PROGRESS,
        "progressStart": {**_PROGRESS, "requestId": Kind.REQUEST},
        "progressUpdate": _PROGRESS,
        "stopped": {**_THREAD, "hitBreakpointIds[]": Kind.BREAKPOINT},
        "terminated": {},
        "thread": _THREAD,
    }
)
