"""The table of places is complete against every edition of the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest

from dap_mux.engine.routes import ROUTES
from dap_mux.pure.protocol.exchange import Id, IdFault, Kind, exchange, places_of
from dap_mux.pure.protocol.handle_fields import PLACE_EVENTS, PLACE_RESPONSES
from dap_mux.pure.protocol.messages import plain, raw
from tests.support.schema import Edition, editions
from tests.unit.protocol.test_handle_fields import REFUSED, flat, leaves, properties

Place = tuple[str, str, str]
# A field of one of these names may say where something is, or where it ends.
PLACE_NAME: Final = re.compile(
    r"(^l|L)ine$|^lines\[\]$|(^c|C)olumn$|(^p|P)ath$|^start$|selectionStart$"
)
PLACE_REQUESTS: Final = {
    name: fields for name, route in ROUTES.items() if (fields := places_of(route.arguments))
}
TABLES: Final = {"request": PLACE_REQUESTS, "response": PLACE_RESPONSES, "event": PLACE_EVENTS}
OURS: Final = {
    ("response", "list"),
    ("response", "breakpoints"),
    ("response", "focus"),
    ("event", "ranks"),
}

# Rows that older editions lack; the one in debugpy's wheel may be the only one here.
NEWER: Final = {
    *(("request", "evaluate", name) for name in ("line", "column", "source.sources*.path")),
    *(
        ("response", "locations", name)
        for name in ("line", "column", "endLine", "endColumn", "source.sources*.path")
    ),
    ("response", "exceptionInfo", "details.source"),  # debugpy's own
}

# Fields that only look like places, each with its reason.
EXCEPTIONS: Final = {
    ("request", "variables", "start"): "the first of a page of children",
    ("response", "completions", "targets[].start"): "debugpy counts it from 0 (read in 1.8.22)",
    ("response", "completions", "targets[].selectionStart"): "within the inserted text, from 0",
}


def places(edition: Edition, definition: str, key: str) -> set[str]:
    """The paths below `key` of a message whose last name sounds like a place."""
    schema = properties(edition, edition._definitions[definition]).get(key, {})
    return {p for p in leaves(edition, schema) if PLACE_NAME.search(p.rsplit(".", 1)[-1])}


def known(edition: Edition) -> Iterator[Place]:
    """Every field of an edition that sounds like a place."""
    for name, definition in edition.requests.items():
        response = definition.removesuffix("Request") + "Response"
        for path in places(edition, definition, "arguments") if name not in REFUSED else ():
            yield "request", name, path
        for path in places(edition, response, "body"):
            yield "response", name, path
    for name, definition in edition.events.items():
        for path in places(edition, definition, "body"):
            yield "event", name, path


def rows() -> set[Place]:
    return {
        (kind, name, path)
        for kind, table in TABLES.items()
        for name, fields in table.items()
        for path, _ in flat(fields)
    }


@pytest.mark.parametrize("edition", editions(), ids=lambda edition: edition.label)
def test_every_place_of_the_schema_is_in_the_table_or_an_exception(edition: Edition) -> None:
    assert set(known(edition)) - rows() - set(EXCEPTIONS) == set()


def test_the_table_has_nothing_that_no_edition_knows() -> None:
    of_the_schema = {row for row in rows() if row[:2] not in OURS}
    assert of_the_schema - {place for e in editions() for place in known(e)} <= NEWER


def test_exceptions_are_still_in_the_schema() -> None:
    assert set(EXCEPTIONS) - {place for e in editions() for place in known(e)} == set()


def test_the_walk_finds_what_is_known_to_be_there() -> None:
    found = {path for kind, name, path in known(editions()[0]) if (kind, name) == STACK}
    names = ("line", "column", "endLine", "endColumn", "source.sources*.path")
    assert found == {f"stackFrames[].{name}" for name in names}


STACK: Final = ("response", "stackTrace")


def test_every_name_has_the_kind_that_it_says() -> None:
    """A column that is taken for a line, or a path for a number, would pass every other test."""
    words = {Kind.LINE: ("line",), Kind.COLUMN: ("column",), Kind.PATH: ("path", "source")}
    for table in TABLES.values():
        for path, kind in (field for fields in table.values() for field in flat(fields)):
            last = path.rsplit(".", 1)[-1].removesuffix("[]").lower()
            assert last.removesuffix("s").endswith(words[kind]), path


def told(kind: Kind, value: Id) -> Id:
    return f"{kind.name}:{value}" if isinstance(value, str) else value + 100


def test_a_stack_is_exchanged() -> None:
    frame = {"id": 1, "line": 5, "column": 0, "endLine": None, "source": {"path": "/a.py"}}
    body = exchange(raw({"stackFrames": [frame]}), PLACE_RESPONSES["stackTrace"], told)
    changed = {"line": 105, "column": 100, "source": {"path": "PATH:/a.py"}}
    assert plain(body) == {"stackFrames": [{**frame, **changed}]}


@pytest.mark.parametrize("line", ["5", 5.0, True, [5]])
def test_a_line_of_another_type_never_passes(line: object) -> None:
    wanted = {"source": {"path": "/a.py"}, "breakpoints": [{"line": line}]}
    with pytest.raises(IdFault, match="line is no line number"):
        exchange(raw(wanted), PLACE_REQUESTS["setBreakpoints"], told)
