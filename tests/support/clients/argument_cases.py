"""Every request with right arguments, and with each of them missing, null and of a wrong type."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]
Path = tuple[str | int, ...]
WRONG: Final[tuple[object, ...]] = (
    None,
    "text",
    "a\0b",
    "\ud800",
    5,
    -1,
    1.5,
    2**31,
    10**40,
    True,
    [],
    {},
    [None],
    {"self": 1},
)
# In place of the arguments themselves.
WHOLES: Final[tuple[object, ...]] = (None, "text", 5, True, [], [1], {})


@dataclass(frozen=True)
class Ids:
    """Ids that are right in a session, as far as it has any."""

    thread: int = 1
    frame: int = 1
    variables: int = 1
    goto: int = 1
    step_in: int = 1


_SOURCE: Final[Json] = {
    "name": "train.py",
    "path": "",
    "sourceReference": 0,
    "presentationHint": "normal",
    "origin": "here",
    "sources": [],
    "checksums": [{"algorithm": "MD5", "checksum": "0"}],
}
_FORMAT: Final = {"hex": False}
_INITIALIZE: Final = {
    "clientID": "somebody",
    "clientName": "Somebody",
    "adapterID": "debugpy",
    "locale": "en",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
    **{
        f"supports{name}": False
        for name in (
            "VariableType",
            "VariablePaging",
            "RunInTerminalRequest",
            "MemoryReferences",
            "ProgressReporting",
            "InvalidatedEvent",
            "MemoryEvent",
            "ArgsCanBeInterpretedByShell",
            "StartDebuggingRequest",
            "ANSIStyling",
        )
    },
}
_ATTACH: Final = {
    "role": "controller",
    "events": ["ranks"],
    "token": "",
    "comm": "off",
    "catchNan": True,
    "locate": True,
    "catchDiverged": True,
    "catchUnequal": "scale",
    "noDebug": False,
    "debugOptions": [],
    "options": "",
    "onTerminate": True,
    "rules": [{"include": True, "path": "/job", "module": None}],
    "autoReload": {"enable": False, "pollingInterval": 1.0, "include": [], "exclude": []},
    "program": "/job/train.py",
    "clientOS": "unix",
    "valuesAcrossRanks": "all",
}


def _exceptions() -> Json:
    path = [{"names": ["Python Exceptions"], "negate": False}, {"names": ["ValueError"]}]
    return {
        "filters": ["uncaught"],
        "filterOptions": [{"filterId": "raised", "condition": "ranks(0):", "mode": "x"}],
        "exceptionOptions": [{"path": path, "breakMode": "never"}],
    }


def _threads(ids: Ids) -> Json:
    return {"threadId": ids.thread, "singleThread": False}


def _step(ids: Ids) -> Json:
    return {**_threads(ids), "granularity": "statement"}


# Of all requests that name no file.
_ANYWHERE: Final[dict[str, Callable[[Ids], Json]]] = {
    "initialize": lambda ids: _INITIALIZE,
    "attach": lambda ids: _ATTACH,
    "launch": lambda ids: _ATTACH,
    "configurationDone": lambda ids: {},
    "disconnect": lambda ids: dict.fromkeys(
        ("restart", "terminateDebuggee", "suspendDebuggee"), False
    ),
    "terminate": lambda ids: {"restart": False},
    "restart": lambda ids: {"to": "call:3"},
    "threads": lambda ids: {},
    "setExceptionBreakpoints": lambda ids: _exceptions(),
    "continue": _threads,
    "pause": lambda ids: {"threadId": ids.thread},
    "next": _step,
    "stepIn": lambda ids: {**_step(ids), "targetId": ids.step_in},
    "stepOut": _step,
    "stepBack": _step,
    "reverseContinue": _step,
    "scopes": lambda ids: {"frameId": ids.frame},
    "variables": lambda ids: {
        "variablesReference": ids.variables,
        "filter": "named",
        "start": 0,
        "count": 5,
        "format": _FORMAT,
    },
    "setVariable": lambda ids: {
        "variablesReference": ids.variables,
        "name": "count",
        "value": "0",
        "format": _FORMAT,
    },
    "setExpression": lambda ids: {
        "expression": "count",
        "value": "0",
        "frameId": ids.frame,
        "format": _FORMAT,
    },
    "stepInTargets": lambda ids: {"frameId": ids.frame},
    "goto": lambda ids: {"threadId": ids.thread, "targetId": ids.goto},
    "exceptionInfo": lambda ids: {"threadId": ids.thread},
    "completions": lambda ids: {"text": "co", "column": 3, "line": 1, "frameId": ids.frame},
    "modules": lambda ids: {"startModule": 0, "moduleCount": 1},
    "setDebuggerProperty": lambda ids: {
        "ideOS": "UNIX",
        "dontTraceStartPatterns": ["/nowhere"],
        "dontTraceEndPatterns": ["nowhere.py"],
        "skipSuspendOnBreakpointException": [],
        "skipPrintBreakpointException": [],
        "multiThreadsSingleNotification": True,
    },
    "session": lambda ids: {},
    "list": lambda ids: {"ranks": "all", "states": []},
    "breakpoints": lambda ids: {},
    "stacks": lambda ids: {"ranks": "all", "threads": "all"},
    "comm": lambda ids: {"ranks": "all", "mode": "off"},
    "why": lambda ids: {"ranks": "all", "samples": 3, "interval": 0.3, "slow": False},
    "compare": lambda ids: {
        "expression": "1",
        "ranks": "all",
        "frame": 0,
        "tolerance": {"relative": 0.0, "absolute": 0.0},
        "timeout": 5.0,
        "history": True,
    },
    "array": lambda ids: {
        "expression": "1",
        "ranks": "all",
        "frame": 0,
        "rows": "$rank",
        "columns": 1,
        "at": [-1, 0],
        "timeout": 5.0,
    },
    "focus": lambda ids: {"rank": 0, "group": "job", "worker": None},
    "scope": lambda ids: {"value": "auto"},
    "view": lambda ids: {"value": "auto"},
    "cast": lambda ids: {"ranks": "all", "command": "p 1", "timeout": 5.0},
    "groups": lambda ids: {"define": {"name": "some", "ranks": "0"}, "delete": None},
    "release": lambda ids: {"ranks": "99"},
    "lease": lambda ids: {"action": "take"},
    "drop": lambda ids: {"ranks": "99"},
}


def right(path: str) -> dict[str, Callable[[Ids], Json]]:
    """Right arguments of each request, all fields given; `path` is a file that ranks have."""
    source = {**_SOURCE, "path": path}
    breakpoint: Json = {
        "line": 6,
        "column": 1,
        "condition": "1 > 2",
        "hitCondition": "999999",
        "logMessage": "",
        "mode": "x",
    }
    function = {"name": "nowhere", "condition": "1 > 2", "hitCondition": "5"}
    parameters = "parameters parameterTypes parameterNames parameterValues"
    frame_format = dict.fromkeys(f"hex {parameters} line module includeAll".split(), False)
    return {
        **_ANYWHERE,
        "setBreakpoints": lambda ids: {
            "source": source,
            "breakpoints": [breakpoint],
            "lines": [6],
            "sourceModified": False,
        },
        "setFunctionBreakpoints": lambda ids: {"breakpoints": [function]},
        "stackTrace": lambda ids: {
            "threadId": ids.thread,
            "startFrame": 0,
            "levels": 20,
            "format": frame_format,
        },
        "source": lambda ids: {"source": source, "sourceReference": 0, "read": False},
        "evaluate": lambda ids: {
            "expression": "1",
            "context": "watch",
            "frameId": ids.frame,
            "line": 1,
            "column": 1,
            "source": source,
            "format": _FORMAT,
        },
        "gotoTargets": lambda ids: {"source": source, "line": 6, "column": 1},
    }


def cases(arguments: Json) -> Iterator[object]:
    """Yield these arguments, then with each field missing and in each wrong form, and none."""
    yield arguments
    yield from WHOLES
    yield {**arguments, "unknown": [1, {"x": None}]}
    for path in _paths(arguments):
        made, holder = _copied(arguments, path)
        del holder[path[-1]]
        yield made
        for wrong in WRONG:
            made, holder = _copied(arguments, path)
            holder[path[-1]] = wrong
            yield made


def _paths(value: object, before: Path = ()) -> Iterator[Path]:
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield (*before, key)
        yield from _paths(inner, (*before, key))


def _copied(arguments: Json, path: Path) -> tuple[Json, Any]:
    """Return a copy, and what holds the last step of a path in it."""
    made = copy.deepcopy(arguments)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    return made, holder
