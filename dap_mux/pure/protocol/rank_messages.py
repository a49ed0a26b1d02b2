"""The bodies of ranks' events and responses, with the fields that the engine uses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import plain

T = TypeVar("T")
Object = dict[str, Any]
MALFORMED: Final = "malformed response"
MAX_NAME: Final = 256  # characters, of an actor or of a function that a rank waits in
MAX_NUMBER: Final = 2**31
READY_MARK: Final = " listens for a debugger on "  # a rank's message to us, not to the user
CURRENT_FRAME: Final = " (Current frame)"
"""debugpy appends it to the name of the frame that raised."""
_PAUSED_ELSEWHERE: Final = "(note: full exception trace is shown but execution is paused at: "
"""debugpy appends it to an exception's name where another frame of the stack is shown."""
MAX_COMPARED: Final = 1 << 17  # characters; a rank tells half of that at most


class Source(Struct):
    """Where the text of a frame comes from."""

    path: str | None = None


class StackFrame(Struct):
    """One frame of a stack."""

    id: int | None = None
    name: str | None = None
    line: int | None = None
    source: Source | None = None
    presentationHint: str | None = None


class Stack(Struct):
    """The answer to `stackTrace`; a rank that is patched sends it with its `stopped` event."""

    stackFrames: list[StackFrame] | None = None
    lineText: str | None = None


class Thread(Struct):
    """One thread of a rank."""

    id: int
    name: str = ""


class Threads(Struct):
    """The answer to `threads`."""

    threads: list[Thread] | None = None


class ExceptionInfo(Struct):
    """The answer to `exceptionInfo`."""

    breakMode: str | None = None


class Evaluated(Struct, gc=False):
    """The answer to `evaluate`."""

    result: str = ""
    type: str | None = None
    variablesReference: int = 0


class BreakpointStates(Struct):
    """The answer to a request that sets breakpoints."""

    breakpoints: list[Object | None] | None = None


class Completion(Struct):
    """One completion, as far as its place is moved."""

    start: int = 0


class Completions(Struct):
    """The answer to `completions`."""

    targets: list[Object] | None = None


class GotoTarget(Struct):
    """A place to jump to."""

    id: int


class GotoTargets(Struct):
    """The answer to `gotoTargets`."""

    targets: list[GotoTarget] | None = None


class SourceText(Struct):
    """The answer to `source`."""

    content: str | None = None


class ActorTold(Struct):
    """An actor in a rank; without a name it is the rank itself.

    `mesh`: its dimensions, their sizes, and its place in them.
    """

    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
    rank: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
    mesh: tuple[list[str], list[int], list[int]]


class Stopped(Stack):
    """The `stopped` event; with stack and name of its thread where the rank is patched to tell."""

    reason: str | None = None
    threadId: int | None = None
    userThreads: list[Thread] | None = None
    threadName: str | None = None
    actor: ActorTold | None = None
    description: str | UnsetType | None = UNSET  # these are passed on as they come
    text: str | UnsetType | None = UNSET
    hitBreakpointIds: list[int] | UnsetType | None = UNSET

    @property
    def hits(self) -> list[int]:
        """The rank's own ids of the breakpoints that it has hit."""
        return self.hitBreakpointIds or []


class ThreadChanged(Struct):
    """The `thread` event."""

    reason: str | None = None
    threadId: int | None = None


class Output(Struct):
    """The `output` event."""

    output: str = ""
    category: str | None = None


class BreakpointChanged(Struct):
    """The `breakpoint` event."""

    breakpoint: Object | None = None


class ModuleChanged(Struct):
    """The `module` event."""

    module: Object


class SourceLoaded(Struct):
    """The `loadedSource` event."""

    source: Object


class Invalidated(Struct):
    """The `invalidated` event."""

    areas: list[str] | None = None


class CapabilitiesChanged(Struct):
    """The `capabilities` event."""

    capabilities: Object | None = None


class Sockets(Struct):
    """debugpy's `debugpySockets` event."""

    sockets: list[Any] | None = None


class Served(Struct):
    """Our `dapMuxServed` event: the rank has no adapter; see `dap_mux.rank.own_port`."""

    debugpy: str = ""


class Marked(Struct):
    """Our `dapMuxMark` event: so much output was sent before it (`injected.attach.send_queue`)."""

    bytes: Annotated[int, msgspec.Meta(ge=0)]


class Held(Struct, gc=False):
    """Our `dapMuxHeld` event: the rank waits in a condition (`injected.comparisons`)."""

    breakpoint: Annotated[int, msgspec.Meta(ge=0)]
    hold: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    value: Annotated[str, msgspec.Meta(max_length=MAX_COMPARED)] = ""
    problem: Annotated[str, msgspec.Meta(max_length=MAX_COMPARED)] = ""  # why there is no value
    line: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)] = 0
    function: Annotated[str, msgspec.Meta(max_length=MAX_NAME)] = ""


class NotFinite(Struct):
    """Our `dapMuxNotFinite` event: the rank is about to stop (`rank.comm.not_finite`).

    `place`: where; `made`: where the value was made, "" where that is not known. `stops`: whether
    it stops, else others have sent it what is not finite.
    """

    text: Annotated[str, msgspec.Meta(max_length=MAX_COMPARED)]
    step: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    place: Annotated[str, msgspec.Meta(max_length=MAX_COMPARED)] = ""
    made: Annotated[str, msgspec.Meta(max_length=MAX_COMPARED)] = ""
    stops: bool = True


class StepTold(Struct):
    """Our `dapMuxStep` event: digests of what parameters are after a step (`rank.comm.live`).

    `order`: what the same step has in all ranks. `digests`: by set of parameters, "" for all.
    `whole`: of all parameters, where there are several sets.
    """

    step: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    order: tuple[int, int]
    digests: dict[str, Annotated[str, msgspec.Meta(max_length=MAX_NAME)]]
    whole: Annotated[str, msgspec.Meta(max_length=MAX_NAME)] = ""


class ChildWaits(Struct):
    """debugpy's `debugpyAttach` event, and the configuration of a `startDebugging` request."""

    subProcessId: int


class StartDebugging(Struct):
    """The arguments of the `startDebugging` request."""

    configuration: ChildWaits


EVENTS: Final[Mapping[str, type[Struct]]] = {
    "stopped": Stopped,
    "thread": ThreadChanged,
    "output": Output,
    "breakpoint": BreakpointChanged,
    "module": ModuleChanged,
    "loadedSource": SourceLoaded,
    "invalidated": Invalidated,
    "capabilities": CapabilitiesChanged,
    "debugpySockets": Sockets,
    "debugpyAttach": ChildWaits,
    "dapMuxServed": Served,
    "dapMuxMark": Marked,
    "dapMuxHeld": Held,
    "dapMuxNotFinite": NotFinite,
    "dapMuxStep": StepTold,
}


_ABSENT: Final = (b"", b"null")
_BRACE: Final = ord("{")
_DETAILS: Final = frozenset({"description", "text", "hitBreakpointIds"})


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def event_body(event: str, body: Raw) -> Object:
    """Return the whole body of an event; its Struct's fields are as they should be.

    Raises `PeerFault`.
    """
    decoded = plain(body)
    kind = EVENTS.get(event)
    if kind is not None:
        read_data(decoded, kind)
    return decoded


def read_data(data: object, kind: type[T]) -> T:
    """Return what the engine reads of decoded data. Raises `PeerFault`."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise PeerFault(str(error)) from None


def stopped_body(body: Raw) -> tuple[Stopped, Object]:
    """Return the body of a `stopped` event, and of it what is passed on. Raises `PeerFault`."""
    if not body or memoryview(body)[0] != _BRACE:
        return Stopped(), {}
    said = read(body, Stopped)
    if said.description is said.text is said.hitBreakpointIds is UNSET:
        return said, {}
    return said, {name: value for name, value in plain(body).items() if name in _DETAILS}


def announces_child(arguments: Raw) -> bool:
    """Whether these arguments of `startDebugging` name a process that waits."""
    try:
        read(arguments, StartDebugging)
    except PeerFault:
        return False
    return True


# Ranks are not trusted, so their messages are decoded where they come in, and raise `PeerFault`
# there if they do not fit; behind that border the engine may rely on these types. They are no
# stricter than needed: fields that are only passed on are not declared, and null means the same as
# an absent field.
def read(body: Raw, kind: type[T]) -> T:
    """Decode the body of an answer; an absent one and null count as {}. Raises `PeerFault`."""
    try:
        decode = _decoder(cast("Any", kind)).decode
        said: T = decode(b"{}" if bytes(body) in _ABSENT else body)
        return said
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PeerFault(str(error)) from None


def read_text(text: str, kind: type[T]) -> T:
    """Decode what an expression of ours has made in a rank: JSON as text. Raises `PeerFault`."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise PeerFault(str(error)) from None


def exception_name(text: str) -> str:
    """Return an exception's type as Python names it, of what debugpy calls it."""
    return text.partition(_PAUSED_ELSEWHERE)[0].rstrip()
