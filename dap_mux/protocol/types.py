"""The arguments that we act on ourselves, typed; what we only pass on is not modelled.

Unknown fields are ignored here and survive where the message is passed on. Names are DAP's own.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Raw

from dap_mux.errors import UsageError

T = TypeVar("T")
Limit = Annotated[float, Meta(ge=0, le=1e9)]
UNAUTHORIZED: Final = 3  # the id of the error that a client without the token gets


class BadArguments(UsageError):
    """A request whose arguments are not what DAP says; names the field."""


class InitializeArguments(msgspec.Struct):
    """`initialize`: what kind of client this is, how it counts and how it spells paths."""

    clientID: str = ""
    linesStartAt1: bool = True
    columnsStartAt1: bool = True
    pathFormat: str = "path"
    supportsProgressReporting: bool = False


class AttachArguments(msgspec.Struct):
    """`attach` and `launch`: our own attributes among debugpy's."""

    role: str = "controller"
    events: list[str] = []
    token: str = ""


class DisconnectArguments(msgspec.Struct):
    """`disconnect`."""

    restart: bool = False
    terminateDebuggee: bool | None = None


class ThreadArguments(msgspec.Struct):
    """`continue`, `pause`, `next`, `stepIn`, `stepOut`, `stackTrace`."""

    threadId: int
    singleThread: bool = False


class Source(msgspec.Struct):
    """A source, as far as breakpoints need it."""

    path: str | None = None


class SetBreakpointsArguments(msgspec.Struct):
    """`setBreakpoints`; `lines` is deprecated in DAP and still sent alone by some clients."""

    source: Source
    breakpoints: list[dict[str, Any]] | None = None
    lines: list[int] = []


class SetFunctionBreakpointsArguments(msgspec.Struct):
    """`setFunctionBreakpoints`."""

    breakpoints: list[dict[str, Any]]


class SetExceptionBreakpointsArguments(msgspec.Struct):
    """`setExceptionBreakpoints`."""

    filters: list[str] = []
    filterOptions: list[dict[str, Any]] = []


class EvaluateArguments(msgspec.Struct):
    """`evaluate`, as far as it may be for us."""

    expression: str
    context: str = ""
    frameId: int | None = None


class VariablesArguments(msgspec.Struct):
    """`variables` and `setVariable`."""

    variablesReference: int


class CompletionsArguments(msgspec.Struct):
    """`completions`; the column is 1-based here."""

    text: str
    column: int
    line: int | None = None


class ToleranceArguments(msgspec.Struct):
    """How much two numbers may differ and still be the same: see `insight.compare`."""

    relative: Limit = 0.0
    absolute: Limit = 0.0


class CompareArguments(msgspec.Struct):
    """Our `compare`; a bare number as `tolerance` is a relative one, `frame` 0 the innermost."""

    expression: str
    ranks: str = "all"
    frame: Annotated[int, Meta(ge=0)] | None = None
    tolerance: Limit | ToleranceArguments = 0.0
    timeout: Limit = 5.0  # s


class ListArguments(msgspec.Struct):
    """Our `list`."""

    ranks: str = "all"
    states: list[str] = []


class FocusArguments(msgspec.Struct):
    """Our `focus`."""

    rank: int
    group: str | None = None
    worker: int | None = None


class ValueArguments(msgspec.Struct):
    """Our `scope` and `view`: without a value they only tell the one in force."""

    value: str | None = None


class CastArguments(msgspec.Struct):
    """Our `cast`; `timeout` in seconds."""

    ranks: str
    command: str
    timeout: float = 5.0


class GroupDefinition(msgspec.Struct):
    """A name for a rank set."""

    name: str
    ranks: str


class GroupsArguments(msgspec.Struct):
    """Our `groups`."""

    define: GroupDefinition | None = None
    delete: str | None = None


class RanksArguments(msgspec.Struct):
    """Our `release` and `drop`."""

    ranks: str


def typed(arguments: Raw, kind: type[T]) -> T:
    """Decode arguments; absent ones count as `{}`. Raises `BadArguments`, naming the field."""
    try:
        return msgspec.json.decode(arguments or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadArguments(f"bad arguments: {error}") from None
