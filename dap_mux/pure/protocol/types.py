"""The arguments of our own requests, checked before a handler sees them (`validation`)."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

Limit = Annotated[float, Meta(ge=0, le=1e9)]
UNAUTHORIZED: Final = 3  # the id of the error that a client without the token gets


class Tolerance(Struct, frozen=True):
    """How much two numbers may differ and still count as the same: either suffices.

    `relative` is a share of the larger one.
    """

    relative: Limit = 0.0
    absolute: Limit = 0.0

    def same(self, one: float, other: float) -> bool:
        """Whether two finite numbers count as the same."""
        return math.isclose(one, other, rel_tol=self.relative, abs_tol=self.absolute)


EXACT: Final = Tolerance()


class CompareArguments(Struct):
    """Our `compare`; a bare number as `tolerance` is a relative one, `frame` 0 the innermost.

    `history`: also tell the values at the last stops at which it was asked so.
    """

    expression: str
    ranks: str = "all"
    frame: Annotated[int, Meta(ge=0)] | None = None
    tolerance: Limit | Tolerance = 0.0
    timeout: Limit = 5.0  # s
    history: bool = False


class ArrayArguments(Struct):
    """Our `array`; `rows` and `columns` are dimensions, `"$rank"` has each rank as a row.

    `at`: an index for each other dimension, -1 for all of it. `ranks`: the one in focus where none
    are given.
    """

    expression: str
    ranks: str = ""
    frame: Annotated[int, Meta(ge=0)] | None = None
    rows: Literal["$rank"] | Annotated[int, Meta(ge=0, le=63)] | None = None
    columns: Annotated[int, Meta(ge=0, le=63)] | None = None
    at: Annotated[list[Annotated[int, Meta(ge=-1, lt=2**53)]], Meta(max_length=64)] = []
    timeout: Limit = 5.0  # s


# Exception filters that debugpy does not know: the session switches them on in the ranks.
NOT_FINITE: Final = "notFinite"
LOCATED: Final = "notFiniteLocated"
DIVERGED: Final = "diverged"


class ListArguments(Struct):
    """Our `list`."""

    ranks: str = "all"
    states: list[str] = []


class StacksArguments(Struct):
    """Our `stacks`."""

    ranks: str = "all"
    threads: Literal["main", "all"] = "main"


CommMode = Literal["", "off", "time", "finite", "hash"]


class CommArguments(Struct):
    """Our `comm`: the mode to begin, "" to ask which one is on."""

    ranks: str = "all"
    mode: CommMode = ""


class WhyArguments(Struct):
    """Our `why`: so many samples of each rank, `interval` seconds apart; or who is `slow`."""

    ranks: str = "all"
    samples: Annotated[int, Meta(ge=2, le=10)] = 3
    interval: Annotated[float, Meta(ge=0.05, le=1)] = 0.3
    slow: bool = False


class FocusArguments(Struct):
    """Our `focus`."""

    rank: int
    group: str | None = None
    worker: int | None = None


class RestartArguments(Struct):
    """DAP's `restart`, with where a replay is to stop then: `31`, `call:8113`, `last`."""

    to: str = ""


class ValueArguments(Struct):
    """Our `scope` and `view`: without a value they return the current one."""

    value: str | None = None


class CastArguments(Struct):
    """Our `cast`; `timeout` in seconds."""

    ranks: str
    command: str
    timeout: float = 5.0


class LeaseArguments(Struct):
    """Our `lease`; without an action it only asks."""

    action: Literal["take", "release"] | None = None


class GroupDefinition(Struct):
    """A name for a rank set."""

    name: str
    ranks: str


class GroupsArguments(Struct):
    """Our `groups`."""

    define: GroupDefinition | None = None
    delete: str | None = None


class RanksArguments(Struct):
    """Our `release` and `drop`."""

    ranks: str
