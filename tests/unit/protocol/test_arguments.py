"""The arguments of every request are those of the DAP schema, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from msgspec import Struct, inspect

from dap_mux.engine.routes import ROUTES
from dap_mux.pure.protocol.arguments import NoArguments
from tests.support.schema import Json, arguments_of, names

# Required in DAP, and debugpy does without.
LENIENT: Final = frozenset(
    {
        "initialize.adapterID",
        "setExceptionBreakpoints.filters",
        "continue.threadId",
        "pause.threadId",
    }
)
# Not looked at by anybody, or by who reads them.
NOT_MODELLED: Final = frozenset({"attach.__restart", "launch.__restart", "restart.arguments"})
TYPES: Final[dict[str, type]] = {
    "string": inspect.StrType,
    "integer": inspect.IntType,
    "boolean": inspect.BoolType,
    "array": inspect.ListType,
    "object": inspect.StructType,
}
CHECKED: Final = sorted(
    name for name, route in ROUTES.items() if route.handler and name in names().requests
)


def differences(where: str, schema: Json, kind: type[Struct]) -> Iterator[str]:
    """What the schema says of an object, and the Struct does not."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    known = {field.encode_name: field for field in info.fields}
    for name, property in schema.get("properties", {}).items():
        place = f"{where}.{name}"
        if place in NOT_MODELLED:
            continue
        if name not in known:
            yield f"{place} is missing"
            continue
        if place not in LENIENT and known[name].required != (name in schema.get("required", ())):
            yield f"{place}: required or not"
        yield from of_type(place, property, known[name].type)


def of_type(place: str, schema: Json, info: inspect.Type) -> Iterator[str]:
    """What the schema says of one value, and the type does not."""
    if not isinstance(schema.get("type"), str):
        return  # of any type
    parts = info.types if isinstance(info, inspect.UnionType) else (info,)
    part = next((part for part in parts if not isinstance(part, inspect.NoneType)), None)
    if "enum" in schema:
        if not isinstance(part, inspect.LiteralType) or set(part.values) != set(schema["enum"]):
            yield f"{place}: {part} is none of {schema['enum']}"
    elif not isinstance(part, TYPES[schema["type"]]):
        yield f"{place}: {schema['type']} is {part}"
    elif isinstance(part, inspect.ListType):
        yield from of_type(f"{place}[]", schema["items"], part.item_type)
    elif isinstance(part, inspect.StructType) and place.count("sources") < 2:
        yield from differences(place, schema, part.cls)


@pytest.mark.parametrize("command", CHECKED)
def test_the_arguments_are_the_schemas(command: str) -> None:
    for schema in arguments_of(command):
        found = list(differences(command, schema, ROUTES[command].arguments))
        assert not found


@pytest.mark.parametrize("command", CHECKED)
def test_who_has_arguments_has_a_struct(command: str) -> None:
    empty = {"configurationDone", "threads"}
    assert (ROUTES[command].arguments is NoArguments) == (command in empty)


@pytest.mark.parametrize("command", sorted(set(ROUTES) - names().requests))
def test_our_own_requests_have_a_struct(command: str) -> None:
    route = ROUTES[command]
    without: Any = {"breakpoints", "session"} | {
        name for name in ROUTES if ROUTES[name].handler is None
    }
    assert (route.arguments is NoArguments) == (command in without)
