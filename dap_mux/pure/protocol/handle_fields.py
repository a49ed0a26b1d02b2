"""The fields of responses and events that hold an id of a rank, or a place in the sources.

A client counts from 0 or from 1, and spells paths in its own way (`linesStartAt1`,
`columnsStartAt1`, `pathFormat`, other local roots); `ClientTranslation` translates places.

Source: the DAP schema, and for our own messages `docs/protocol.md`. A test holds the shapes against
the schema, and names the few fields that only look like ids or places.
"""

from __future__ import annotations

from typing import Final

from dap_mux.pure.protocol.arguments import Source
from dap_mux.pure.protocol.exchange import Kind, shape_of, tables

_THREAD: Final = {"threadId": Kind.THREAD}
_PROGRESS: Final = {"progressId": Kind.PROGRESS}
_POINT: Final = {"line": Kind.LINE, "column": Kind.COLUMN}
_SPAN: Final = {**_POINT, "endLine": Kind.LINE, "endColumn": Kind.COLUMN}
_SOURCE: Final = {"source": shape_of(Source)}
_VALUE: Final = {
    "variablesReference": Kind.VARIABLES,
    "memoryReference": Kind.MEMORY,
    "valueLocationReference": Kind.LOCATION,
}
_VARIABLE: Final = {**_VALUE, "declarationLocationReference": Kind.LOCATION}
_FRAME: Final = {
    "id": Kind.FRAME,
    "instructionPointerReference": Kind.MEMORY,
    "moduleId": Kind.MODULE,
    **_SPAN,
    **_SOURCE,
}
_GOTO_TARGET: Final = {"id": Kind.GOTO, "instructionPointerReference": Kind.MEMORY, **_SPAN}
_MODULE: Final = {"id": Kind.MODULE, "path": Kind.PATH, "symbolFilePath": Kind.PATH}
_BREAKPOINT: Final = {
    "id": Kind.BREAKPOINT,
    "instructionReference": Kind.MEMORY,
    **_SPAN,
    **_SOURCE,
}
_BREAKPOINTS: Final = {"breakpoints": [_BREAKPOINT]}
_OUR_PLACE: Final = {"path": Kind.PATH, "line": Kind.LINE}

RESPONSES, PLACE_RESPONSES = tables(
    {
        "breakpointLocations": {"breakpoints": [_SPAN]},
        "breakpoints": {"breakpoints": [_OUR_PLACE]},
        "dataBreakpointInfo": {"dataId": Kind.DATA},
        "disassemble": {"instructions": [{**_SPAN, "location": _SOURCE["source"]}]},
        "evaluate": _VALUE,
        "exceptionInfo": {"details": {"source": Kind.PATH}},  # debugpy's own, not in the schema
        "focus": _OUR_PLACE,
        "gotoTargets": {"targets": [_GOTO_TARGET]},
        "list": {"ranks": [_OUR_PLACE]},
        "loadedSources": {"sources": [_SOURCE["source"]]},
        "locations": {**_SPAN, **_SOURCE},
        "modules": {"modules": [_MODULE]},
        "scopes": {"scopes": [{"variablesReference": Kind.VARIABLES, **_SPAN, **_SOURCE}]},
        "setBreakpoints": _BREAKPOINTS,
        "setDataBreakpoints": _BREAKPOINTS,
        "setExceptionBreakpoints": _BREAKPOINTS,
        "setExpression": _VALUE,
        "setFunctionBreakpoints": _BREAKPOINTS,
        "setInstructionBreakpoints": _BREAKPOINTS,
        "setVariable": _VALUE,
        "stackTrace": {"stackFrames": [_FRAME]},
        "stepInTargets": {"targets": [{"id": Kind.STEP_IN, **_SPAN}]},
        "threads": {"threads": [{"id": Kind.THREAD}]},
        "variables": {"variables": [_VARIABLE]},
    }
)

EVENTS, PLACE_EVENTS = tables(
    {
        "breakpoint": {"breakpoint": _BREAKPOINT},
        "continued": _THREAD,
        "invalidated": {**_THREAD, "stackFrameId": Kind.FRAME},
        "loadedSource": _SOURCE,
        "memory": {"memoryReference": Kind.MEMORY},
        "module": {"module": _MODULE},
        "output": {
            "variablesReference": Kind.VARIABLES,
            "locationReference": Kind.LOCATION,
            **_POINT,
            **_SOURCE,
        },
        "progressEnd": _PROGRESS,
        "progressStart": {**_PROGRESS, "requestId": Kind.REQUEST},
        "progressUpdate": _PROGRESS,
        "ranks": {"changed": [_OUR_PLACE]},
        "stopped": {**_THREAD, "hitBreakpointIds": [Kind.BREAKPOINT]},
        "thread": _THREAD,
    }
)
