"""The syntax of rows in `handle_fields` and `place_fields`, compiled to fast functions.

A path names fields from the top of the arguments or body: `a.b` steps into an object, `a[]`
into each element of a list, and `a*` stands for the object itself and, at any depth, for each
element of its list `a` (`source.sources*.sourceReference`: a source and the sources it came
from). Whatever is absent, null or of another shape is left as it is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dap_mux.errors import PeerFault


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

ZERO_IS_NONE: Final = frozenset({Kind.VARIABLES, Kind.SOURCE, Kind.LOCATION})
_TEXT: Final = frozenset({Kind.MEMORY, Kind.DATA, Kind.PROGRESS, Kind.PATH})


class IdFault(PeerFault):
    """An id of a wrong type: it cannot be translated, so it must not be passed on."""


class Field(NamedTuple):
    """One field of a message: its path and its kind."""

    path: str
    kind: Kind


class Fields(tuple[Field, ...]):  # noqa: SLOT001 - a tuple can hold `walk` in no slot
    """The ids of one message, with the compiled walk to them; empty (false) when it has none.

    `heads`: the fields of the arguments or body that hold them, each with the walk from there.
    `zeroes`: those among them that are an id themselves, and none where they are 0.
    """

    walk: Step
    heads: dict[str, Step]
    zeroes: frozenset[str]

    def __getattr__(self, name: str) -> Any:
        """Compile the walk once, for the first message of its kind: most never come."""
        if name not in Fields.__annotations__:
            raise AttributeError(name)
        paths = [(field.path.split("."), field.kind) for field in self]
        self.walk = _walk(paths)
        names = [path[0].removesuffix("[]") for path, _ in paths]
        self.heads = {
            head: _walk([path for path, name in zip(paths, names, strict=True) if name == head])
            for head in names
        }
        leaves = ((path[0], kind) for path, kind in paths if len(path) == 1)
        self.zeroes = frozenset(name for name, kind in leaves if kind in ZERO_IS_NONE)
        return vars(self)[name]


def table(rows: Mapping[str, Mapping[str, Kind]]) -> Mapping[str, Fields]:
    """Compile the rows of a table: message to path to kind."""
    return {
        message: Fields(Field(path, kind) for path, kind in row.items())
        for message, row in rows.items()
    }


def _walk(paths: list[tuple[list[str], Kind]]) -> Step:
    """Fields that start alike share their first steps, so that a list is walked once."""
    steps = [_leaf(path[0], kind) for path, kind in paths if len(path) == 1]
    branches: dict[str, list[tuple[list[str], Kind]]] = {}
    for path, kind in paths:
        if len(path) > 1:
            branches.setdefault(path[0], []).append((path[1:], kind))
    steps += [_branch(name, _walk(rest)) for name, rest in branches.items()]
    return _all(steps)


def _all(steps: Sequence[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]

    def walk(holder: dict[str, Any], translate: Translate) -> None:
        for step in steps:
            step(holder, translate)

    return walk


def _leaf(name: str, kind: Kind) -> Step:
    return _leaf_list(name[:-2], kind) if name.endswith("[]") else _leaf_value(name, kind)


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


def _branch(name: str, rest: Step) -> Step:
    if name.endswith("[]"):
        return _each(name[:-2], rest)
    return _tree(name[:-1], rest) if name.endswith("*") else _object(name, rest)


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
