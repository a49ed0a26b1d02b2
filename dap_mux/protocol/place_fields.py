"""The fields of messages that hold a line, a column or the path of a file: one literal table.

Source: the DAP schema and our own requests (`docs/protocol.md`). A client counts from 0 or from
1, and spells paths in its own way (`linesStartAt1`, `columnsStartAt1`, `pathFormat`, other
local roots); `ClientTranslation` translates these fields. A message without such fields has no
row. A test holds the table against the schema, and names the few fields that only look alike.
"""

from __future__ import annotations

from typing import Final

from dap_mux.protocol.handle_paths import Kind, table

__all__ = ["PLACE_EVENTS", "PLACE_REQUESTS", "PLACE_RESPONSES"]


def _span(prefix: str = "") -> dict[str, Kind]:
    """A place that may end elsewhere, as DAP names it."""
    return {
        f"{prefix}line": Kind.LINE,
        f"{prefix}column": Kind.COLUMN,
        f"{prefix}endLine": Kind.LINE,
        f"{prefix}endColumn": Kind.COLUMN,
    }


def _source(name: str = "source") -> dict[str, Kind]:
    return {f"{name}.sources*.path": Kind.PATH}


_POINT: Final = {"line": Kind.LINE, "column": Kind.COLUMN}
_MODULE: Final = {"path": Kind.PATH, "symbolFilePath": Kind.PATH}
_BREAKPOINTS: Final = {**_span("breakpoints[]."), **_source("breakpoints[].source")}
_OUR_RANKS: Final = {"path": Kind.PATH, "line": Kind.LINE}

PLACE_REQUESTS: Final = table(
    {
        "breakpointLocations": {**_span(), **_source()},
        "completions": _POINT,
        "evaluate": {**_POINT, **_source()},
        "gotoTargets": {**_POINT, **_source()},
        "setBreakpoints": {
            **_source(),
            "breakpoints[].line": Kind.LINE,
            "breakpoints[].column": Kind.COLUMN,
            "lines[]": Kind.LINE,
        },
        "source": _source(),
    }
)

PLACE_RESPONSES: Final = table(
    {
        "breakpoints": {"breakpoints[].path": Kind.PATH, "breakpoints[].line": Kind.LINE},
        "breakpointLocations": _span("breakpoints[]."),
        "disassemble": {**_span("instructions[]."), **_source("instructions[].location")},
        "exceptionInfo": {"details.source": Kind.PATH},  # debugpy's own, not in the schema
        "focus": _OUR_RANKS,
        "gotoTargets": _span("targets[]."),
        "list": {f"ranks[].{name}": kind for name, kind in _OUR_RANKS.items()},
        "loadedSources": {"sources[].sources*.path": Kind.PATH},
        "locations": {**_span(), **_source()},
        "modules": {f"modules[].{name}": kind for name, kind in _MODULE.items()},
        "scopes": {**_span("scopes[]."), **_source("scopes[].source")},
        "setBreakpoints": _BREAKPOINTS,
        "setDataBreakpoints": _BREAKPOINTS,
        "setExceptionBreakpoints": _BREAKPOINTS,
        "setFunctionBreakpoints": _BREAKPOINTS,
        "setInstructionBreakpoints": _BREAKPOINTS,
        "stackTrace": {**_span("stackFrames[]."), **_source("stackFrames[].source")},
        "stepInTargets": _span("targets[]."),
    }
)

PLACE_EVENTS: Final = table(
    {
        "breakpoint": {**_span("breakpoint."), **_source("breakpoint.source")},
        "loadedSource": _source(),
        "module": {f"module.{name}": kind for name, kind in _MODULE.items()},
        "output": {**_POINT, **_source()},
        "ranks": {f"changed[].{name}": kind for name, kind in _OUR_RANKS.items()},
    }
)
