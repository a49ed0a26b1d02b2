"""What may be sent to debugpy passes as it was sent; what may not is refused by its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from dap_mux.engine.routes import ROUTES
from dap_mux.pure.protocol.validation import MAX_DEPTH, BadArguments, check

AT = {"source": {"path": "/job/train.py"}}


def passed(command: str, arguments: object) -> Any:
    """What is made of arguments."""
    raw = Raw(json.dumps(arguments).encode())
    return json.loads(bytes(check(command, raw, ROUTES[command].arguments)))


def refused(command: str, arguments: object) -> str:
    """Why arguments are refused."""
    with pytest.raises(BadArguments) as caught:
        passed(command, arguments)
    return str(caught.value)


def breakpoints(*wanted: object) -> dict[str, object]:
    return {**AT, "breakpoints": [*wanted]}


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({}, "breakpoints[0].line is missing"),
        ({"line": None}, "breakpoints[0].line must be an integer, not null"),
        ({"line": "7"}, "breakpoints[0].line must be an integer, not a string"),
        ({"line": 7.5}, "breakpoints[0].line must be an integer, not a number"),
        ({"line": True}, "breakpoints[0].line must be an integer, not true or false"),
        ({"line": -1}, "breakpoints[0].line must be at least 0"),
        ({"line": 2**31}, "breakpoints[0].line must be at most 2147483647"),
        ({"line": 10**40}, "breakpoints[0].line is too large a number"),
        ({"line": 7, "condition": 5}, "breakpoints[0].condition must be a string, not an integer"),
        (
            {"line": 7, "hitCondition": []},
            "breakpoints[0].hitCondition must be a string, not a list",
        ),
        ({"line": 7, "self": 1}, "debugpy accepts no field named 'self'"),
        (5, "breakpoints[0] must be an object, not an integer"),
        (None, "breakpoints[0] must be an object, not null"),
    ],
)
def test_breakpoints(wanted: object, why: str) -> None:
    assert refused("setBreakpoints", breakpoints(wanted)) == f"setBreakpoints: {why}"


@pytest.mark.parametrize(
    ("command", "arguments", "why"),
    [
        ("setBreakpoints", {}, "source is missing"),
        ("setBreakpoints", {"source": 5}, "source must be an object, not an integer"),
        ("setBreakpoints", {"source": {"path": "/a\0b"}}, "source.path holds a NUL"),
        ("setBreakpoints", [1], "arguments must be an object, not a list"),
        ("setBreakpoints", 5, "arguments must be an object, not an integer"),
        (
            "setExceptionBreakpoints",
            {"filters": [], "exceptionOptions": [{"path": [{}], "breakMode": "always"}]},
            "exceptionOptions[0].path[0].names is missing",
        ),
        (
            "setExceptionBreakpoints",
            {"filters": [], "exceptionOptions": [{"breakMode": "often"}]},
            "exceptionOptions[0].breakMode cannot be 'often'",
        ),
        ("setExceptionBreakpoints", {"filters": None, "filterOptions": 5}, "filterOptions must be"),
        ("attach", {"options": 5}, "options must be a string, not an integer"),
        ("attach", {"clientOS": "macos"}, "clientOS must be windows or unix"),
        ("attach", {"rules": [{"path": 5}]}, "rules[0].path must be a string, not an integer"),
        ("setDebuggerProperty", {"ideOS": "amiga"}, "ideOS must be windows or unix"),
        ("cast", {"ranks": "all"}, "command is missing"),
        (
            "compare",
            {"expression": "x", "tolerance": "1"},
            "tolerance must be a number or an object",
        ),
        ("groups", {"define": {"name": "a"}}, "define.ranks is missing"),
    ],
)
def test_others(command: str, arguments: object, why: str) -> None:
    assert refused(command, arguments).startswith(f"{command}: {why}")


def test_null_is_absent() -> None:
    wanted = {"line": 7, "condition": None, "hitCondition": None, "logMessage": None, "mine": None}
    sent = {"source": {"path": "/a", "name": None}, "breakpoints": [wanted], "lines": None}
    mended = {"source": {"path": "/a"}, "breakpoints": [{"line": 7, "mine": None}]}
    assert passed("setBreakpoints", sent) == mended
    assert passed("threads", None) == {}
    assert passed("attach", {"noDebug": None, "mine": None}) == {"mine": None}


def test_an_empty_table_of_lua_is_an_empty_list() -> None:
    assert passed("setBreakpoints", {**AT, "breakpoints": {}}) == {**AT, "breakpoints": []}
    assert passed("setExceptionBreakpoints", {"filters": {}}) == {"filters": []}
    assert passed("threads", []) == {}
    assert passed("evaluate", {"expression": "1", "format": []}) == {
        "expression": "1",
        "format": {},
    }


def test_a_whole_number_may_have_a_point() -> None:
    assert passed("setBreakpoints", breakpoints({"line": 7.0})) == breakpoints({"line": 7})


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("setBreakpoints", {**breakpoints({"line": 7, "mine": [1.5, None]}), "more": {"a": []}}),
        ("attach", {"justMyCode": "yes", "port": "5678", "whatever": [None], "env": {}}),
        ("evaluate", {"expression": "null + 1234567890123456789", "context": "anything"}),
        ("stackTrace", {"threadId": 1, "startFrame": 0, "levels": 20}),
    ],
)
def test_all_else_passes(command: str, arguments: object) -> None:
    assert passed(command, arguments) == arguments


def test_bytes_pass_untouched() -> None:
    sent = Raw(b'{ "threadId" : 1 , "other":1.50 }')
    assert bytes(check("stackTrace", sent, ROUTES["stackTrace"].arguments)) == bytes(sent)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 400, 5000])
def test_deep_nesting(depth: int) -> None:
    deep = b'{"expression":"1","mine":' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(BadArguments, match="nested"):
        check("evaluate", Raw(deep), ROUTES["evaluate"].arguments)


def test_a_name_that_is_taken_cannot_be_hidden() -> None:
    sent = Raw(rb'{"source":{"path":"/a"},"breakpoints":[{"line":7,"\u0073elf":1}]}')
    with pytest.raises(BadArguments, match="'self'"):
        check("setBreakpoints", sent, ROUTES["setBreakpoints"].arguments)
