"""Ids and places in messages are exchanged where the tables have them, and nowhere else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from msgspec import Raw

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.exchange import Fields, Id, IdFault, Kind, exchange
from dap_mux.pure.protocol.handle_fields import EVENTS, RESPONSES
from dap_mux.pure.protocol.messages import NO_RAW, plain, raw
from tests.unit.protocol.test_schema_tables import PLACES, REQUESTS

Json = dict[str, Any]


def test_only_a_message_without_ids_is_false() -> None:
    assert not REQUESTS["threads"]
    assert RESPONSES["threads"]


def upstream_to_ours(kind: Kind, value: Id) -> Id:
    """Stand in for `Handles`: visible, and of the same type."""
    return f"{kind.name}:{value}" if isinstance(value, str) else value + 1000


def walked(fields: Fields, body: Json) -> Json:
    """Return what the walk makes of a copy of `body`."""
    edited = copy.deepcopy(body)
    fields.walk(edited, upstream_to_ours)
    return edited


def source() -> Json:
    """Return a new source: the walk works in place, so none may stand in two places."""
    return {"path": "/a.py", "sourceReference": 4}


CASES = [
    pytest.param(REQUESTS["scopes"], {"frameId": 0}, {"frameId": 1000}, id="0 is a frame"),
    pytest.param(
        RESPONSES["evaluate"],
        {"result": "1", "variablesReference": 0, "memoryReference": "0x1"},
        {"result": "1", "variablesReference": 0, "memoryReference": "MEMORY:0x1"},
        id="0 is no variables reference, text is text",
    ),
    pytest.param(
        RESPONSES["stackTrace"],
        {
            "stackFrames": [
                {"id": 2, "name": "f", "source": source(), "moduleId": "m", "new": {"id": 1}},
                {"id": 3, "name": "g", "source": {"sourceReference": 0}, "moduleId": None},
                {"id": 4, "name": "h", "source": None},
            ],
            "totalFrames": 3,
        },
        {
            "stackFrames": [
                {
                    "id": 1002,
                    "name": "f",
                    "source": {"path": "/a.py", "sourceReference": 1004},
                    "moduleId": "MODULE:m",
                    "new": {"id": 1},
                },
                {"id": 1003, "name": "g", "source": {"sourceReference": 0}, "moduleId": None},
                {"id": 1004, "name": "h", "source": None},
            ],
            "totalFrames": 3,
        },
        id="lists, nested objects, unknown fields, nulls",
    ),
    pytest.param(
        REQUESTS["source"],
        {"sourceReference": 1, "source": {"sources": [source(), {"sources": [source()]}]}},
        {
            "sourceReference": 1001,
            "source": {
                "sources": [
                    {"path": "/a.py", "sourceReference": 1004},
                    {"sources": [{"path": "/a.py", "sourceReference": 1004}]},
                ]
            },
        },
        id="sources within sources",
    ),
    pytest.param(
        EVENTS["stopped"],
        {"reason": "breakpoint", "threadId": 1, "hitBreakpointIds": [0, 7]},
        {"reason": "breakpoint", "threadId": 1001, "hitBreakpointIds": [1000, 1007]},
        id="a list of ids",
    ),
    pytest.param(EVENTS["stopped"], {"threadId": None}, {"threadId": None}, id="null"),
    pytest.param(
        RESPONSES["variables"], {"variables": {"a": 1}}, {"variables": {"a": 1}}, id="no list"
    ),
    pytest.param(
        RESPONSES["variables"], {"variables": [1, None]}, {"variables": [1, None]}, id="no objects"
    ),
    pytest.param(
        EVENTS["breakpoint"],
        {"breakpoint": [{"id": 1}]},
        {"breakpoint": [{"id": 1}]},
        id="no object",
    ),
    pytest.param(RESPONSES["threads"], {}, {}, id="empty"),
    pytest.param(Fields(), {"id": 1}, {"id": 1}, id="no row"),
]


@pytest.mark.parametrize(("fields", "body", "expected"), CASES)
def test_walk(fields: Fields, body: Json, expected: Json) -> None:
    assert walked(fields, body) == expected


@pytest.mark.parametrize("value", ["3", 3.0, True, [3], {"id": 3}, ""])
def test_an_id_of_another_type_never_passes(value: object) -> None:
    with pytest.raises(IdFault, match="frameId is no frame id") as caught:
        walked(REQUESTS["scopes"], {"frameId": value})
    assert isinstance(caught.value, PeerFault)


@pytest.mark.parametrize("value", ["3", 3.5, [3]])
def test_an_id_of_another_type_never_passes_in_a_list(value: object) -> None:
    with pytest.raises(IdFault, match="hitBreakpointIds is no breakpoint id"):
        walked(EVENTS["stopped"], {"threadId": 1, "hitBreakpointIds": [1, value]})


@pytest.mark.parametrize("value", [False, 0.0])
def test_a_zero_of_another_type_is_no_reference_either(value: object) -> None:
    body = {"variablesReference": value}
    assert walked(RESPONSES["evaluate"], body) == body


def test_sources_nested_beyond_the_stack_are_walked() -> None:
    top: Json = {"sourceReference": 1}
    for _ in range(20_000):
        top = {"sources": [top], "sourceReference": 1}
    EVENTS["loadedSource"].walk({"source": top}, upstream_to_ours)
    while "sources" in top:
        assert top["sourceReference"] == 1001
        top = top.pop("sources")[0]
    assert top["sourceReference"] == 1001


def test_exchange_copies_what_holds_no_id_byte_for_byte() -> None:
    """Numbers that Python would round, and texts of any length, are not read."""
    body = Raw(b'{"result" : "\\u00e9",  "exact": 1e999, "variablesReference":3 ,"x":[1.10]}')
    swapped = exchange(body, RESPONSES["evaluate"], lambda _, old: 70)
    expected = b'{"result":"\\u00e9","exact":1e999,"variablesReference":70,"x":[1.10]}'
    assert bytes(swapped) == expected


def test_exchange_leaves_a_body_without_ids_as_it_came() -> None:
    body = Raw(b'{"result" : "1",  "variablesReference": 0}')
    assert exchange(body, RESPONSES["evaluate"], lambda _, old: 70) == body


def test_zero_is_an_id_where_it_does_not_mean_none() -> None:
    swapped = exchange(Raw(b'{"frameId":0}'), REQUESTS["scopes"], lambda _, old: 70)
    assert plain(swapped) == {"frameId": 70}


def test_exchange_does_what_the_walk_does_at_any_depth() -> None:
    body: Json = {"stackFrames": [{"id": 1, "source": {"sources": [{"sourceReference": 2}]}}]}
    swapped = exchange(raw(body), RESPONSES["stackTrace"], lambda _, old: int(old) + 100)
    RESPONSES["stackTrace"].walk(body, lambda _, old: int(old) + 100)
    assert plain(swapped) == body


@pytest.mark.parametrize("body", [NO_RAW, Raw(b"null"), Raw(b"[1]"), Raw(b"{}")])
def test_exchange_of_nothing_is_an_empty_object(body: Raw) -> None:
    assert bytes(exchange(body, RESPONSES["evaluate"], lambda _, old: old)) == b"{}"


def test_exchange_finds_every_row() -> None:
    """A row whose first step is a tree would stand for the whole body, which nothing decodes."""
    for table in (REQUESTS, RESPONSES, EVENTS):
        for fields in table.values():
            assert ... not in fields.values()


# Places


def told(kind: Kind, value: Id) -> Id:
    return f"{kind.name}:{value}" if isinstance(value, str) else value + 100


def test_a_stack_is_exchanged() -> None:
    frame = {"id": 1, "line": 5, "column": 0, "endLine": None, "source": {"path": "/a.py"}}
    body = exchange(raw({"stackFrames": [frame]}), PLACES.responses["stackTrace"], told)
    changed = {"line": 105, "column": 100, "source": {"path": "PATH:/a.py"}}
    assert plain(body) == {"stackFrames": [{**frame, **changed}]}


@pytest.mark.parametrize("line", ["5", 5.0, True, [5]])
def test_a_line_of_another_type_never_passes(line: object) -> None:
    wanted = {"source": {"path": "/a.py"}, "breakpoints": [{"line": line}]}
    with pytest.raises(IdFault, match="line is no line number"):
        exchange(raw(wanted), PLACES.requests["setBreakpoints"], told)
