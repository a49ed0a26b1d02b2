"""The tables of ids and of places are complete against every edition of the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pytest

from dap_mux.engine.routes import ROUTES
from dap_mux.engine.session.rank_events import EVENT_TABLE
from dap_mux.pure.protocol.exchange import Fields, Kind, handles_of, places_of
from dap_mux.pure.protocol.handle_fields import EVENTS, PLACE_EVENTS, PLACE_RESPONSES, RESPONSES
from tests.support.schema import Edition, editions

Json = dict[str, Any]
Row = tuple[str, str, str]
"""Kind and name of a message, and the path of a field."""

# A request that is refused goes to no rank, so it has no Struct.
REFUSED: Final = {name for name, route in ROUTES.items() if route.handler is None}
REQUESTS: Final = {
    name: handles_of(route.arguments) for name, route in ROUTES.items() if name not in REFUSED
}
PLACE_REQUESTS: Final = {
    name: fields for name, route in ROUTES.items() if (fields := places_of(route.arguments))
}


class Table(NamedTuple):
    """The rows that we have, and the fields of the schema that they have to hold.

    `named`: how such a field is called. `newer`: rows that older editions lack; the one in
    debugpy's wheel may be the only one here. `exceptions`: fields that only look like one, each
    with its reason.
    """

    requests: Mapping[str, Fields]
    responses: Mapping[str, Fields]
    events: Mapping[str, Fields]
    named: re.Pattern[str]
    newer: set[Row]
    exceptions: dict[Row, str]

    def rows(self) -> set[Row]:
        """Every field that the table has."""
        tables = {"request": self.requests, "response": self.responses, "event": self.events}
        return {
            (kind, name, path)
            for kind, table in tables.items()
            for name, fields in table.items()
            for path, _ in flat(fields)
        }

    def known(self, edition: Edition) -> set[Row]:
        """Every field of an edition that is called so."""
        return {
            (kind, name, path)
            for kind, name, paths in messages(edition)
            for path in paths
            if self.named.search(path.rsplit(".", 1)[-1])
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


def messages(edition: Edition) -> Iterator[tuple[str, str, set[str]]]:
    """Yield (kind, name, paths) for every message of an edition that goes to or from a rank."""
    for name, definition in edition.requests.items():
        if name not in REFUSED:
            yield "request", name, paths_below(edition, definition, "arguments")
        response = definition.removesuffix("Request") + "Response"
        yield "response", name, paths_below(edition, response, "body")
    for name, definition in edition.events.items():
        yield "event", name, paths_below(edition, definition, "body")


def paths_below(edition: Edition, definition: str, key: str) -> set[str]:
    """Return the paths below `key` of a message."""
    return leaves(edition, properties(edition, edition._definitions[definition]).get(key, {}))


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


IDS: Final = Table(
    REQUESTS,
    RESPONSES,
    EVENTS,
    re.compile(r"(?:^id|Ids?|ID|[rR]eferences?|^address)(?:\[\])?$"),
    newer={
        ("request", "evaluate", "source.sources*.sourceReference"),
        ("response", "locations", "source.sources*.sourceReference"),
        ("response", "evaluate", "valueLocationReference"),
        ("response", "setExpression", "valueLocationReference"),
        ("response", "setVariable", "valueLocationReference"),
        ("response", "variables", "variables[].valueLocationReference"),
        ("response", "variables", "variables[].declarationLocationReference"),
        ("event", "output", "locationReference"),
    },
    exceptions={
        ("request", "initialize", "clientID"): "the client's name",
        ("request", "initialize", "adapterID"): "the adapter's name",
        (
            "request",
            "setExceptionBreakpoints",
            "filterOptions[].filterId",
        ): "a name from capabilities",
        (
            "response",
            "disassemble",
            "instructions[].address",
        ): "an address, shown and never sent back",
        ("response", "exceptionInfo", "exceptionId"): "the exception's type",
        ("response", "readMemory", "address"): "an address, shown and never sent back",
        ("response", "runInTerminal", "processId"): "of the operating system",
        ("response", "runInTerminal", "shellProcessId"): "of the operating system",
        ("event", "process", "systemProcessId"): "of the operating system",
    },
)
PLACES: Final = Table(
    PLACE_REQUESTS,
    PLACE_RESPONSES,
    PLACE_EVENTS,
    re.compile(r"(^l|L)ine$|^lines\[\]$|(^c|C)olumn$|(^p|P)ath$|^start$|selectionStart$"),
    newer={
        *(("request", "evaluate", name) for name in ("line", "column", "source.sources*.path")),
        *(
            ("response", "locations", name)
            for name in ("line", "column", "endLine", "endColumn", "source.sources*.path")
        ),
        ("response", "exceptionInfo", "details.source"),  # debugpy's own
    },
    exceptions={
        ("request", "variables", "start"): "the first of a page of children",
        ("response", "completions", "targets[].start"): "debugpy counts it from 0 (read in 1.8.22)",
        ("response", "completions", "targets[].selectionStart"): "within the inserted text, from 0",
    },
)
OURS: Final = {
    ("response", "list"),
    ("response", "breakpoints"),
    ("response", "focus"),
    ("event", "ranks"),
}
each_table: Final = pytest.mark.parametrize("table", [IDS, PLACES], ids=["ids", "places"])


@each_table
@pytest.mark.parametrize("edition", editions(), ids=lambda edition: edition.label)
def test_every_field_of_the_schema_is_in_the_table_or_an_exception(
    edition: Edition, table: Table
) -> None:
    assert table.known(edition) - table.rows() - set(table.exceptions) == set()


@each_table
def test_the_table_has_nothing_that_no_edition_knows(table: Table) -> None:
    of_the_schema = {row for row in table.rows() if row[:2] not in OURS}
    assert of_the_schema - {row for e in editions() for row in table.known(e)} <= table.newer


@each_table
def test_exceptions_are_still_in_the_schema(table: Table) -> None:
    assert set(table.exceptions) - {row for e in editions() for row in table.known(e)} == set()


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (IDS, ("id", "source.sources*.sourceReference", "instructionPointerReference", "moduleId")),
        (PLACES, ("line", "column", "endLine", "endColumn", "source.sources*.path")),
    ],
    ids=["ids", "places"],
)
def test_the_walk_of_the_schema_finds_what_is_known_to_be_there(
    table: Table, names: tuple[str, ...]
) -> None:
    known = table.known(editions()[0])
    found = {path for kind, name, path in known if (kind, name) == ("response", "stackTrace")}
    assert found == {f"stackFrames[].{name}" for name in names}


def test_every_row_is_of_a_message_that_we_know() -> None:
    assert set(RESPONSES) <= set(ROUTES)
    assert set(EVENTS) <= set(EVENT_TABLE)


def test_every_place_has_the_kind_that_its_name_says() -> None:
    """A column that is taken for a line, or a path for a number, would pass every other test."""
    words = {Kind.LINE: ("line",), Kind.COLUMN: ("column",), Kind.PATH: ("path", "source")}
    for table in (PLACES.requests, PLACES.responses, PLACES.events):
        for path, kind in (field for fields in table.values() for field in flat(fields)):
            last = path.rsplit(".", 1)[-1].removesuffix("[]").lower()
            assert last.removesuffix("s").endswith(words[kind]), path
