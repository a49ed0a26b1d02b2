"""Validates a client's arguments against their Struct before they are sent to debugpy."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct, inspect

from dap_mux.pure.errors import UsageError
from dap_mux.pure.protocol.messages import EMPTY

T = TypeVar("T", bound=Struct)
Mend: TypeAlias = "Callable[[Any], Any]"

MAX_DEPTH: Final = 64  # of lists and objects in each other: Python's reader ends at some hundreds
_INT64: Final = 2**63
_OPENING: Final = (b"[", b"{")
# Names of pydevd's own parameters: it passes fields on as keyword arguments, and must not get two.
_TAKEN: Final = frozenset({"self", "update_ids_from_dap"})
# What may be in the way of debugpy although the Struct is satisfied: null, a name that is taken
# (perhaps spelt with escapes), or a number too large for it. Rare, so looked at in Python.
_DOUBTFUL: Final = (b"null", b'"self"', b'"update_ids_from_dap"', b"\\u00")
_NUMBERS: Final = bytes.maketrans(b"123456789E", b"000000000e")  # to find long ones at C's speed
_LONG: Final = (b"0" * 16, b"e000")
# How msgspec words its errors. Compiled where one is met: most sessions meet none.
_EXPECTED: Final = r"Expected `(?P<wanted>[^`]*)`(?:, got `(?P<got>[^`]*)`)?"
_BOUND: Final = r"Expected `\w+` (?P<sign>>=|<=|>|<) (?P<bound>[^ ]+)"
_MISSING: Final = r"missing required field `(?P<name>[^`]*)`"
_ENUM: Final = r"Invalid enum value (?P<value>.*)"
_PLACE: Final = r"(?s)(?P<why>.*?)(?: - at `\$\.?(?P<path>.*)`)?"
_TYPES: Final = {
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "float": "a number",
    "array": "a list",
    "object": "an object",
}
_SIGNS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


class BadArguments(UsageError):
    """A request whose arguments are not valid; the message names the field."""


# debugpy checks few of its arguments: a wrong type in the wrong place ends its reading thread, and
# the rank cannot be debugged any more (docs/internals/debugpy.md). So nothing wrong is passed on,
# and the error names the field.
def check(command: str, arguments: Raw, kind: type[Struct]) -> Raw:
    """Return valid arguments, corrected where possible. Raises `BadArguments`."""
    if bytes(arguments) in (b"", b"null", b"[]"):
        arguments = EMPTY
    if not _is_doubtful(arguments):
        try:
            _decoder(kind).decode(arguments)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # perhaps it can be corrected; if not, the error is raised below
        else:
            return arguments
    return _mended(command, arguments, kind)


def typed(arguments: Raw, kind: type[T]) -> T:
    """Decode arguments; absent ones count as `{}`. Raises `BadArguments`, naming the field."""
    try:
        return msgspec.json.decode(arguments or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadArguments(_readable(str(error))) from None


@cache
def _decoder(kind: type[Struct]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(kind)


def _is_doubtful(arguments: Raw) -> bool:
    text = bytes(arguments)
    if any(token in text for token in _DOUBTFUL) or sum(map(text.count, _OPENING)) > MAX_DEPTH:
        return True
    numbers = text.translate(_NUMBERS, b"+")
    return any(long in numbers for long in _LONG)


def _mended(command: str, arguments: Raw, kind: type[Struct]) -> Raw:
    try:
        value = msgspec.json.decode(arguments)
        _check_wire(value)
        mended = _mended_object(value, kind)
        msgspec.convert(mended, kind)
        return Raw(msgspec.json.encode(mended))
    except BadArguments as error:
        raise BadArguments(f"{command}: {error}") from None
    except RecursionError:
        raise BadArguments(f"{command}: {_TOO_DEEP}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError) as error:
        raise BadArguments(f"{command}: {_readable(str(error))}") from None


# What Python's own JSON reader, or pydevd behind it, cannot take wherever it stands


_TOO_DEEP: Final = f"lists and objects are nested more than {MAX_DEPTH} deep"


def _check_wire(value: Any) -> None:
    """Refuse what would break a reader in the rank; no recursion, as the depth may be hostile."""
    level, depth = [("", value)], 0
    while level:
        if depth > MAX_DEPTH:
            raise BadArguments(_TOO_DEEP)
        depth += 1
        below: list[tuple[str, Any]] = []
        for place, item in level:
            if isinstance(item, dict):
                below += [(f"{place}.{name}", inner) for name, inner in item.items()]
            elif isinstance(item, list):
                below += [(f"{place}[{index}]", inner) for index, inner in enumerate(item)]
            elif isinstance(item, int) and not -_INT64 <= item < _INT64:
                raise BadArguments(f"{place.lstrip('.')} is too large a number")
        level = below


# Mending


# Three things are corrected instead, as debugpy reads them: null is an absent field, Lua's `{}` is
# the empty list where a list is expected, and 7.0 is the number 7.
def _mend(info: inspect.Type) -> Mend:
    """Return a function that corrects null, `{}` and 7.0 in a value of this type."""
    if isinstance(info, inspect.UnionType):
        return _each_of([_mend(part) for part in info.types])
    if isinstance(info, inspect.StructType):
        return lambda value: _mended_object(value, info.cls)
    if isinstance(info, inspect.ListType):
        item = _mend(info.item_type)
        return lambda value: _mended_list(value, item)
    if isinstance(info, inspect.IntType):
        return _whole
    return _as_it_is


def _each_of(mends: list[Mend]) -> Mend:
    def mend(value: Any) -> Any:
        for each in mends:
            value = each(value)
        return value

    return mend


def _as_it_is(value: Any) -> Any:
    return value


def _whole(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _mended_list(value: Any, item: Mend) -> Any:
    if value == {}:
        return []
    return [item(each) for each in value] if isinstance(value, list) else value


def _mended_object(value: Any, kind: type[Struct]) -> Any:
    if not isinstance(value, dict):
        return {} if value == [] else value
    taken = _TAKEN & value.keys()
    if taken:
        raise BadArguments(f"debugpy accepts no field named {min(taken)!r}")
    mends, required = _fields(kind)
    return {
        name: mends.get(name, _as_it_is)(inner)
        for name, inner in value.items()
        if inner is not None or name not in mends or name in required
    }


@cache
def _fields(kind: type[Struct]) -> tuple[dict[str, Mend], frozenset[str]]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    mends = {field.encode_name: _mend(field.type) for field in info.fields}
    return mends, frozenset(field.encode_name for field in info.fields if field.required)


# Saying what is wrong


def _readable(error: str) -> str:
    """Rephrase an error of msgspec, which names Python's types, in terms of JSON."""
    place = re.fullmatch(_PLACE, error)
    why, path = (place["why"], place["path"] or "") if place else (error, "")
    missing = re.search(_MISSING, why)
    if missing:
        return f"{path}.{missing['name']} is missing".removeprefix(".")
    return f"{'arguments' if path in ('', '[...]') else path} {_what(why)}"


def _what(why: str) -> str:
    bound, enum = re.match(_BOUND, why), re.match(_ENUM, why)
    expected = re.match(_EXPECTED, why)
    if "out of range" in why:
        return "holds a number that is too large"
    if "matching regex" in why:
        return "must be windows or unix" if "unix" in why else "holds a NUL"
    if bound:
        return f"must be {_SIGNS[bound['sign']]} {bound['bound']}"
    if enum:
        return f"cannot be {enum['value']}"
    if expected and expected["got"]:
        wanted = [one for one in expected["wanted"].split(" | ") if one != "null"]
        named = " or ".join(_TYPES.get(one, one) for one in wanted)
        return f"must be {named}, not {_got(expected['got'])}"
    return f"is not valid: {why}"


def _got(got: str) -> str:
    return got if got == "null" else _TYPES.get(got, got)
