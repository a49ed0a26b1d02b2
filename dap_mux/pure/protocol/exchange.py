"""Ids, lines and paths in messages, exchanged for others."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from types import EllipsisType
from typing import Any, Final, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import EMPTY, MessageError

_parts: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_value: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_ZERO: Final = Raw(b"0")


class Kind(enum.Enum):
    """The kind of a field; the value is its name in error messages."""

    THREAD = "thread id"
    FRAME = "frame id"
    VARIABLES = "variables reference"
    SOURCE = "source reference"
    BREAKPOINT = "breakpoint id"
    GOTO = "goto target"
    STEP_IN = "step-in target"
    MODULE = "module id"
    # Instruction references too: DAP lets a client pass one where the other is asked for.
    MEMORY = "memory reference"
    LOCATION = "location reference"
    DATA = "data id"
    PROGRESS = "progress id"
    REQUEST = "request number"
    # Not ids, but exchanged all the same: where something is, as one client counts and spells it.
    LINE = "line number"
    COLUMN = "column"
    PATH = "path"

    # Members are singletons: the C hash by identity, not Enum's in Python, on the hot path.
    __hash__ = object.__hash__


Id: TypeAlias = "int | str"
Translate: TypeAlias = "Callable[[Kind, Id], Id]"
Step: TypeAlias = "Callable[[dict[str, Any], Translate], None]"
Shape: TypeAlias = "Mapping[str, Field]"
Field: TypeAlias = "Kind | Shape | Sequence[Kind] | Sequence[Shape] | EllipsisType"

PLACES: Final = (Kind.LINE, Kind.COLUMN, Kind.PATH)
ZERO_IS_NONE: Final = (Kind.VARIABLES, Kind.SOURCE, Kind.LOCATION)
_TEXT: Final = (Kind.MEMORY, Kind.DATA, Kind.PROGRESS, Kind.PATH)


class IdFault(PeerFault):
    """An id of a wrong type: it cannot be translated, so it must not be passed on."""


class Fields(dict[str, Any]):
    """The shape of one message, compiled for its first occurrence; empty (false) without fields."""

    @cached_property
    def heads(self) -> dict[str, Step]:
        """The walk from each field of the arguments or body."""
        return {name: _step(name, field) for name, field in self.items()}

    @cached_property
    def zeroes(self) -> frozenset[str]:
        """Those fields that are an id themselves, and none where they are 0."""
        return frozenset(name for name, field in self.items() if field in ZERO_IS_NONE)

    @cached_property
    def walk(self) -> Step:
        """Replace in place each id of a body by `translate(kind, id)`.

        Absent and null ids are left, and so is 0 where it means "none" (variables, source and
        location references). Raises `IdFault` for an id that has not the type DAP gives it.
        """
        return _walk(self)


def exchange(body: Raw, fields: Fields, translate: Translate) -> Raw:
    """Return `body` with its ids translated as `fields.walk` does; {} if it is not an object.

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


# Which fields


@cache
def handles_of(arguments: type[Struct]) -> Fields:
    """Return the ids of a rank among the arguments of a request."""
    return Fields(_selected(shape_of(arguments), places=False) or {})


@cache
def places_of(arguments: type[Struct]) -> Fields:
    """Return the lines, columns and paths among the arguments of a request."""
    return Fields(_selected(shape_of(arguments), places=True) or {})


def tables(shapes: Mapping[str, Shape]) -> tuple[Mapping[str, Fields], Mapping[str, Fields]]:
    """Return the handles and the places of messages by their name; only of those that have some."""
    handles, places = (
        {
            name: Fields(fields)
            for name, shape in shapes.items()
            if (fields := _selected(shape, places=places))
        }
        for places in (False, True)
    )
    return handles, places


# A shape names the fields of an object that hold one. It looks like the JSON that it describes: a
# `Kind` for each such field, `[...]` for a list, and `...` for a list of more objects of the same
# shape (a source and the sources it came from). The shape of a request follows from the types of
# its Struct (`arguments`); `handle_fields` has those of responses and events. Each is compiled to
# fast functions. Whatever is absent, null or of another shape is left as it is.
def shape_of(hint: Any, around: Any = None) -> Any:
    """Return the shape that a type has in JSON, None if it holds no field of any kind."""
    if isinstance(hint, Kind):
        return hint
    if hint is around:
        return ...
    if isinstance(hint, type(Struct)):
        hints = get_type_hints(hint, include_extras=True).items()
        return {name: field for name, one in hints if (field := shape_of(one, hint))}
    field = next(filter(None, (shape_of(part, around) for part in get_args(hint))), None)
    return [field] if get_origin(hint) is list and field not in (None, ...) else field


def _selected(field: Any, *, places: bool) -> Any:
    """Return what is left of a shape if only places are wanted, or only ids."""
    if isinstance(field, Kind):
        return field if (field in PLACES) is places else None
    if isinstance(field, list):
        item = _selected(field[0], places=places)
        return [item] if item else None
    if field is ...:
        return field
    inner = {name: _selected(one, places=places) for name, one in field.items()}
    kept = {name: one for name, one in inner.items() if one}
    return None if all(one is ... for one in kept.values()) else kept


# How they are reached


def _walk(shape: Shape) -> Step:
    steps = [_step(name, field) for name, field in shape.items() if field is not ...]
    step = steps[0] if len(steps) == 1 else _all(steps)
    trees = [name for name, field in shape.items() if field is ...]
    return _tree(trees[0], step) if trees else step


def _step(name: str, field: Any) -> Step:
    if isinstance(field, Kind):
        return _leaf_value(name, field)
    if isinstance(field, list):
        item = field[0]
        return _leaf_list(name, item) if isinstance(item, Kind) else _each(name, _walk(item))
    return _object(name, _walk(field))


def _all(steps: Sequence[Step]) -> Step:
    def walk(holder: dict[str, Any], translate: Translate) -> None:
        for step in steps:
            step(holder, translate)

    return walk


def _leaf_value(name: str, kind: Kind) -> Step:
    zero_is_none = kind in ZERO_IS_NONE
    usual = str if kind in _TEXT else int

    def step(holder: dict[str, Any], translate: Translate) -> None:
        value = holder.get(name)
        if value is None or (zero_is_none and value == 0):
            return
        known = value if type(value) is usual else _checked(name, kind, value)
        holder[name] = translate(kind, known)

    return step


def _leaf_list(name: str, kind: Kind) -> Step:
    def step(holder: dict[str, Any], translate: Translate) -> None:
        values = holder.get(name)
        if type(values) is list:
            holder[name] = [translate(kind, _checked(name, kind, value)) for value in values]

    return step


def _checked(name: str, kind: Kind, value: Any) -> Id:
    """Check the type: a lax client would read "3" or 3.0 as the id 3 of another rank."""
    expected = str if kind in _TEXT else int
    if type(value) is expected or (kind is Kind.MODULE and type(value) is str):
        known: Id = value
        return known
    raise IdFault(f"{name} is no {kind.value}: {value!r:.40}")


def _object(name: str, rest: Step) -> Step:
    def step(holder: dict[str, Any], translate: Translate) -> None:
        inner = holder.get(name)
        if type(inner) is dict:
            rest(inner, translate)

    return step


def _each(name: str, rest: Step) -> Step:
    def step(holder: dict[str, Any], translate: Translate) -> None:
        items = holder.get(name)
        if type(items) is list:
            for item in items:
                if type(item) is dict:
                    rest(item, translate)

    return step


def _tree(name: str, rest: Step) -> Step:
    def step(holder: dict[str, Any], translate: Translate) -> None:
        todo = [holder]
        for item in todo:  # grows while walked: a hostile depth must not end the stack
            rest(item, translate)
            below = item.get(name)
            if type(below) is list:
                todo.extend(inner for inner in below if type(inner) is dict)

    return step
