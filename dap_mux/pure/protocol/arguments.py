"""The arguments of DAP's requests, as the schema has them: what a client may send.

Numbers are bounded as DAP bounds ids: debugpy passes lines and counts on to C code.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from dap_mux.pure.protocol.exchange import Kind

MAX_INT: Final = 2**31 - 1
Id = Annotated[int, Meta(ge=-(2**31), le=MAX_INT)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT)]
# debugpy looks for the file of a breakpoint; no path holds a NUL, and asking for one raises there.
FileName = Annotated[str, Meta(pattern=r"\A[^\0]*\Z")]
ClientOS = Annotated[str, Meta(pattern=r"\A(?i:windows|win|unix)\Z")]

# Types of fields that are exchanged: `exchange` finds them by their kind.
ThreadId = Annotated[Id, Kind.THREAD]
FrameId = Annotated[Id, Kind.FRAME]
VariablesReference = Annotated[Id, Kind.VARIABLES]
SourceReference = Annotated[Id, Kind.SOURCE]
Line = Annotated[Count, Kind.LINE]
Column = Annotated[Count, Kind.COLUMN]
Path = Annotated[FileName, Kind.PATH]


class NoArguments(Struct):
    """`configurationDone`, `threads` and the like: nothing that matters to anybody."""


# The session itself


# Every request is held against its Struct before anything is done with it (`validation`); the table
# of requests is `engine.routes`. A test compares these with the DAP schema, field by field. They
# are more lenient than it where debugpy is: see `LENIENT` in that test. Unknown fields are allowed
# everywhere. An absent field and null mean the same.
class InitializeArguments(Struct):
    """`initialize`: what kind of client this is, how it counts and how it spells paths."""

    clientID: str = ""
    clientName: str | None = None
    adapterID: str | None = None
    locale: str | None = None
    linesStartAt1: bool = True
    columnsStartAt1: bool = True
    pathFormat: str = "path"
    supportsVariableType: bool = False
    supportsVariablePaging: bool = False
    supportsRunInTerminalRequest: bool = False
    supportsMemoryReferences: bool = False
    supportsProgressReporting: bool = False
    supportsInvalidatedEvent: bool = False
    supportsMemoryEvent: bool = False
    supportsArgsCanBeInterpretedByShell: bool = False
    supportsStartDebuggingRequest: bool = False
    supportsANSIStyling: bool = False


class Rule(Struct):
    """One of debugpy's `rules`; it looks for `*` in the path, and sorts by the module's length."""

    path: FileName | None = None
    module: str | None = None


class AutoReload(Struct):
    """debugpy's `autoReload`."""

    pollingInterval: float | None = None
    include: list[str] | None = None
    exclude: list[str] | None = None


class AttachArguments(Struct):
    """`attach` and `launch`: our own attributes, and those that debugpy cannot take in any type.

    All others pass as they are. Addresses and `pathMappings` are checked by who reads them.
    """

    role: str = "controller"
    events: list[str] = []
    token: str = ""
    comm: Literal["", "off", "time", "finite", "hash"] = ""
    catchNan: bool = False
    locate: bool = False
    catchDiverged: bool = False
    catchUnequal: str = ""
    valuesAcrossRanks: Literal["off", "differing", "all"] | None = None
    noDebug: bool | None = None
    debugOptions: list[str] | None = None
    options: str | None = None
    onTerminate: bool | str | None = None
    rules: list[Rule] | None = None
    autoReload: AutoReload | bool | None = None
    program: FileName | None = None
    clientOS: ClientOS | None = None


class TerminateArguments(Struct):
    """`terminate`."""

    restart: bool = False


class DisconnectArguments(TerminateArguments):
    """`disconnect`."""

    terminateDebuggee: bool | None = None
    suspendDebuggee: bool | None = None


# Breakpoints


class Checksum(Struct):
    """The checksum of a source."""

    algorithm: Literal["MD5", "SHA1", "SHA256", "timestamp"]
    checksum: str


class Source(Struct):
    """A source: a path, or a reference to a text."""

    name: str | None = None
    path: Path | None = None
    sourceReference: SourceReference | None = None
    presentationHint: Literal["normal", "emphasize", "deemphasize"] | None = None
    origin: str | None = None
    sources: list[Source] | None = None
    adapterData: Any = None
    checksums: list[Checksum] | None = None


class SourceBreakpoint(Struct):
    """One breakpoint in a file."""

    line: Line
    column: Column | None = None
    condition: str | None = None
    hitCondition: str | None = None
    logMessage: str | None = None
    mode: str | None = None


class FunctionBreakpoint(Struct):
    """One breakpoint at a function."""

    name: str
    condition: str | None = None
    hitCondition: str | None = None


class ExceptionFilterOptions(Struct):
    """An exception filter with a condition."""

    filterId: str
    condition: str | None = None
    mode: str | None = None


class ExceptionPathSegment(Struct):
    """One step down the tree of exceptions."""

    names: list[str]
    negate: bool = False


class ExceptionOptions(Struct):
    """What to do about a group of exceptions."""

    breakMode: Literal["never", "always", "unhandled", "userUnhandled"]
    path: list[ExceptionPathSegment] | None = None


class SetBreakpointsArguments(Struct):
    """`setBreakpoints`; `lines` is deprecated in DAP and still sent alone by some clients."""

    source: Source
    breakpoints: list[SourceBreakpoint] | None = None
    lines: list[Line] = []
    sourceModified: bool = False


class SetFunctionBreakpointsArguments(Struct):
    """`setFunctionBreakpoints`."""

    breakpoints: list[FunctionBreakpoint]


class SetExceptionBreakpointsArguments(Struct):
    """`setExceptionBreakpoints`."""

    filters: list[str] = []
    filterOptions: list[ExceptionFilterOptions] = []
    exceptionOptions: list[ExceptionOptions] = []


# Running and stopping


class PauseArguments(Struct):
    """`pause`, as debugpy takes it: without `threadId` it means the focus."""

    threadId: ThreadId | None = None


class ContinueArguments(PauseArguments):
    """`continue`, likewise."""

    singleThread: bool = False


class ThreadArguments(Struct):
    """`exceptionInfo`, and what all others about one thread share."""

    threadId: ThreadId


class StepArguments(ThreadArguments):
    """`next` and `stepOut`."""

    singleThread: bool = False
    granularity: Literal["statement", "line", "instruction"] | None = None


class StepInArguments(StepArguments):
    """`stepIn`."""

    targetId: Annotated[Id, Kind.STEP_IN] | None = None


# Data of one rank


class ValueFormat(Struct):
    """How values are written."""

    hex: bool | None = None


class StackFrameFormat(ValueFormat):
    """How frames are written."""

    parameters: bool | None = None
    parameterTypes: bool | None = None
    parameterNames: bool | None = None
    parameterValues: bool | None = None
    line: bool | None = None
    module: bool | None = None
    includeAll: bool | None = None


class StackTraceArguments(ThreadArguments):
    """`stackTrace`."""

    startFrame: Count | None = None
    levels: Count | None = None
    format: StackFrameFormat | None = None


class FrameArguments(Struct):
    """`scopes` and `stepInTargets`."""

    frameId: FrameId


class ReferenceArguments(Struct):
    """What `variables` and `setVariable` share."""

    variablesReference: VariablesReference


class VariablesArguments(ReferenceArguments):
    """`variables`."""

    filter: Literal["indexed", "named"] | None = None
    start: Count | None = None
    count: Count | None = None
    format: ValueFormat | None = None


class SetVariableArguments(ReferenceArguments):
    """`setVariable`."""

    name: str
    value: str
    format: ValueFormat | None = None


class SetExpressionArguments(Struct):
    """`setExpression`."""

    expression: str
    value: str
    frameId: FrameId | None = None
    format: ValueFormat | None = None


class SourceArguments(Struct, kw_only=True):
    """`source`."""

    source: Source | None = None
    sourceReference: SourceReference
    read: bool = False  # ours: where there is a path alone, a rank reads it


class EvaluateArguments(Struct):
    """`evaluate`."""

    expression: str
    context: str = ""
    frameId: FrameId | None = None
    line: Line | None = None
    column: Column | None = None
    source: Source | None = None
    format: ValueFormat | None = None


class CompletionsArguments(Struct):
    """`completions`."""

    text: str
    column: Column
    line: Line | None = None
    frameId: FrameId | None = None


class GotoArguments(ThreadArguments):
    """`goto`."""

    targetId: Annotated[Id, Kind.GOTO]


class GotoTargetsArguments(Struct):
    """`gotoTargets`."""

    source: Source
    line: Line
    column: Column | None = None


class ModulesArguments(Struct):
    """`modules`."""

    startModule: Count | None = None
    moduleCount: Count | None = None


class SetDebuggerPropertyArguments(Struct):
    """debugpy's `setDebuggerProperty`."""

    ideOS: ClientOS | None = None
    dontTraceStartPatterns: list[str] | None = None
    dontTraceEndPatterns: list[str] | None = None
    skipSuspendOnBreakpointException: list[str] | None = None
    skipPrintBreakpointException: list[str] | None = None
    multiThreadsSingleNotification: bool | None = None
