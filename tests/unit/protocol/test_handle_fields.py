"""The fields of ids are complete against every edition of the schema, and the walk obeys them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from msgspec import Raw

from dap_mux.engine.routes import ROUTES
from dap_mux.engine.session.rank_events import EVENT_TABLE
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.exchange import Fields, Id, IdFault, Kind, exchange, handles_of
from dap_mux.pure.protocol.handle_fields import EVENTS, RESPONSES
from dap_mux.pure.protocol.messages import NO_RAW, plain, raw
from tests.support.schema import Edition, editions

Json = dict[str, Any]
Found = dict[str, set[str]]

# A request that is refused goes to no rank, so it has no Struct.
REFUSED: Final = {name for name, route in ROUTES.items() if route.handler is None}
REQUESTS: Final = {
    name: handles_of(route.arguments) for name, route in ROUTES.items() if name not in REFUSED
}
# A field of one of these names may be an id.
ID_NAME: Final = re.compile(r"^id$|Ids?$|ID$|[rR]eferences?$|^address$")

# Rows that older editions lack; the one in debugpy's wheel may be the only one here.
NEWER: Final = {
    ("request", "evaluate", "source.sources*.sourceReference"),
    ("response", "locations", "source.sources*.sourceReference"),
    ("response", "evaluate", "valueLocationReference"),
    ("response", "setExpression", "valueLocationReference"),
    ("response", "setVariable", "valueLocationReference"),
    ("response", "variables", "variables[].valueLocationReference"),
    ("response", "variables", "variables[].declarationLocationReference"),
    ("event", "output", "locationReference"),
}

# Fields that look like ids and are none of a rank's, each with its reason.
EXCEPTIONS: Final = {
    ("request", "initialize", "clientID"): "the client's name",
    ("request", "initialize", "adapterID"): "the adapter's name",
    ("request", "setExceptionBreakpoints", "filterOptions[].filterId"): "a name from capabilities",
    ("response", "disassemble", "instructions[].address"): "an address, shown and never sent back",
    ("response", "exceptionInfo", "exceptionId"): "the exception's type",
    ("response", "readMemory", "address"): "an address, shown and never sent back",
    ("response", "runInTerminal", "processId"): "of the operating system",
    ("response", "runInTerminal", "shellProcessId"): "of the operating system",
    ("event", "process", "systemProcessId"): "of the operating system",
}


def properties(edition: Edition, schema: Json) -> Json:
    """Return the fields of a type, those it inherits by allOf and $ref too."""
    found: Json = dict(schema.get("properties", {}))
    if "$ref" in schema:
        found |= properties(edition, edition._definitions[schema["$ref"].rsplit("/", 1)[1]])
    for part in [*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())]:
        found |= properties(edition, part)
    return found


def leaves(edition: Edition, schema: Json, path: str = "", seen: tuple[str, ...] = ()) -> set[str]:
    """Return the path of every integer or string below `schema`, recursion as in the table."""
    reference = schema.get("$ref", "").rsplit("/", 1)[-1]
    if reference in seen:
        return set()
    seen = (*seen, reference) if reference else seen
    schema = edition._definitions[reference] if reference else schema
    fields = properties(edition, schema)
    if reference == "Source":
        path += ".sources*"
    inner = [leaves(edition, field, f"{path}.{name}", seen) for name, field in fields.items()]
    if "items" in schema:
        inner.append(leaves(edition, schema["items"], f"{path}[]", seen))
    kinds = schema.get("type", ())
    here = {"integer", "string"} & set([kinds] if isinstance(kinds, str) else kinds)
    return set().union({path.lstrip(".")} if here else (), *inner)


def suspects(edition: Edition, definition: str, key: str) -> set[str]:
    """Return the paths below `key` of a message whose last name sounds like an id."""
    schema = properties(edition, edition._definitions[definition]).get(key, {})
    paths = leaves(edition, schema)
    return {path for path in paths if ID_NAME.search(path.rsplit(".", 1)[-1].removesuffix("[]"))}


def messages(edition: Edition) -> Iterator[tuple[str, str, set[str]]]:
    """Yield (kind, name, paths that sound like ids) for every message of an edition."""
    for name, definition in edition.requests.items():
        if name not in REFUSED:
            yield "request", name, suspects(edition, definition, "arguments")
        response = definition.removesuffix("Request") + "Response"
        yield "response", name, suspects(edition, response, "body")
    for name, definition in edition.events.items():
        yield "event", name, suspects(edition, definition, "body")


TABLES: Final = {"request": REQUESTS, "response": RESPONSES, "event": EVENTS}


def flat(field: Any, path: str = "") -> Iterator[tuple[str, Kind]]:
    """Yield the fields of a shape: `a.b` in an object, `a[]` in a list, `a*` in any depth of it."""
    if isinstance(field, Kind):
        yield path, field
    elif isinstance(field, list):
        yield from flat(field[0], f"{path}[]")
    else:
        tree = "".join(f".{name}*" for name, inner in field.items() if inner is ...)
        for name, inner in field.items():
            if inner is not ...:
                yield from flat(inner, f"{path}{tree}.{name}".lstrip("."))


def table_paths(kind: str, name: str) -> set[str]:
    return {path for path, _ in flat(TABLES[kind].get(name, {}))}


@pytest.mark.parametrize("edition", editions(), ids=lambda edition: edition.label)
def test_every_id_of_the_schema_is_in_the_table_or_an_exception(edition: Edition) -> None:
    missing = [
        (kind, name, path)
        for kind, name, paths in messages(edition)
        for path in paths - table_paths(kind, name)
        if (kind, name, path) not in EXCEPTIONS
    ]
    assert missing == []


def test_the_walk_of_the_schema_finds_the_known_ids() -> None:
    found = {(kind, name): paths for kind, name, paths in messages(editions()[0])}
    assert found["event", "stopped"] == {"threadId", "hitBreakpointIds[]"}
    assert found["response", "stackTrace"] == {
        "stackFrames[].id",
        "stackFrames[].source.sources*.sourceReference",
        "stackFrames[].instructionPointerReference",
        "stackFrames[].moduleId",
    }


def test_the_table_has_nothing_that_no_edition_knows() -> None:
    known = {
        (kind, name, path) for e in editions() for kind, name, ps in messages(e) for path in ps
    }
    rows = {
        (kind, name, path)
        for kind, table in TABLES.items()
        for name in table
        for path in table_paths(kind, name)
    }
    assert rows - known <= NEWER


def test_exceptions_are_still_in_the_schema() -> None:
    known = {
        (kind, name, path) for e in editions() for kind, name, ps in messages(e) for path in ps
    }
    assert set(EXCEPTIONS) - known == set()


def test_every_row_is_of_a_message_that_we_know() -> None:
    assert set(RESPONSES) <= set(ROUTES)
    assert set(EVENTS) <= set(EVENT_TABLE)


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
