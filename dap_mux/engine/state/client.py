"""A client of the session and its requests: state only, which `clients` and `messages` change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Raw, Struct, field

from dap_mux.engine.admission import Token
from dap_mux.engine.state.client_translation import ClientTranslation
from dap_mux.pure.pathmap import PathMap
from dap_mux.pure.protocol.arguments import InitializeArguments
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets.world import DebuggeeId

# The events that tell each kind of client which rows stop, run, come and go: its dialect.
#
# Pure functions of `RowStates`. The same facts need different events, because editors handle
# `stopped` differently (measured in VS Code, nvim-dap and dape). `applied` tells which rows run,
# once the client has applied an `allThreadsStopped`: that is when its next `threads` (or the
# `stackTrace` of the stopped thread) has been answered. A `continued` sent earlier would be
# overwritten, and a running rank shown as paused.

EventBody: TypeAlias = tuple[str, dict[str, Any]]
Script: TypeAlias = tuple[EventBody, ...]
MAX_SINGLE_STOPS: Final = 8  # late stops told one by one, to clients that need it


class RowStates(Struct, frozen=True):
    """The rows of a client's view. `details`: the reason and the like of the stop in focus."""

    focus: int
    running: tuple[int, ...] = ()
    details: dict[str, Any] = field(default_factory=lambda: {"reason": "pause"})


def stopped(states: RowStates, thread: int, *, all: bool, hint: bool = False) -> EventBody:
    """One `stopped` event for one row."""
    body = {**states.details, "threadId": thread, "allThreadsStopped": all}
    return "stopped", body | ({"preserveFocusHint": True} if hint else {})


def continued(thread: int, *, all: bool = False) -> EventBody:
    """One `continued` event; `allThreadsContinued` is always present."""
    return "continued", {"threadId": thread, "allThreadsContinued": all}


def thread(reason: str, id: int) -> EventBody:
    """One `thread` event."""
    return "thread", {"reason": reason, "threadId": id}


def _each(rows: tuple[int, ...]) -> tuple[EventBody, ...]:
    return tuple(continued(row) for row in rows)


class Dialect:
    """The base class: a client that follows the protocol to the letter."""

    renames = False  # a `thread started` with a known id means a new name, and nothing else
    means_the_row = False  # `continue`, `pause` or a step beside the focus acts on that row alone
    fetches = False  # always fetches the stack of a stop that it has applied; `threads` tells less
    repeats_steps = True  # a key that is held: a step that comes while one is under way is dropped
    capabilities: Mapping[str, bool] = {}  # other than the session's
    redraws = False  # it draws the line of its focus anew, after a late stop, once asked to
    stack_applies = True  # an answered `stackTrace` of the stopped row shows the stop is applied

    def stop(self, states: RowStates) -> Script:
        """The focus has stopped: the client goes there."""
        return (stopped(states, states.focus, all=True),)

    def unseen(self, looked: bool) -> bool:
        """Whether a late stop must be told like a first one; `looked`: it is at its focus."""
        return False

    def late(self, states: RowStates, rows: tuple[int, ...]) -> Script:
        """More rows stopped while the focus stays where it is."""
        return (stopped(states, states.focus, all=True, hint=True),)

    def slow(self, states: RowStates, rows: tuple[int, ...]) -> Script:
        """Others arrived from a step and the focus is still under way: it stays the focus."""
        return (stopped(states, rows[0], all=True, hint=True),)

    def applied(self, states: RowStates, stepping: int | None) -> Script:
        """An `allThreadsStopped` is applied: tell which rows run; the focus, `stepping`, does.

        VS Code moves its focus 0.8 s after a step if the last `continued` named the focus alone.
        """
        if stepping is None:
            return _each(states.running)
        others = tuple(row for row in states.running if row != stepping)
        if others:
            return (continued(stepping), *_each(others))
        return (continued(stepping), stopped(states, states.focus, all=False, hint=True))

    def move(self, states: RowStates, old: int | None) -> Script:
        """The focus moves from row `old` to that of `states`; no rank runs on."""
        return self.stop(states)

    def resume_all(self, focus: int) -> Script:
        """Everything runs on, or a step has begun."""
        return (continued(focus, all=True),)

    def resume_some(self, rows: tuple[int, ...], states: RowStates | None) -> Script:
        """These rows run on while others stay; `states` is what the focus still shows."""
        return _each(rows)

    def joined(self, row: int, states: RowStates | None) -> Script:
        """A row is new."""
        return (thread("started", row),)

    def left(self, row: int, *, focus: bool) -> Script:
        """A row is gone; `focus`: the client stands there, and a `move` may follow."""
        return (thread("exited", row),)


class VSCode(Dialect):
    """Measured in VS Code 1.100. A row's own button sends only the thread id."""

    renames = True
    means_the_row = True
    redraws = True  # docs/internals/editors.md#vs-code
    stack_applies = False
    # It asks for one frame first, and for the others 0.4 s later unless it is told meanwhile that
    # some row runs: then they never come, and "Load More Stack Frames" stays in the call stack.
    capabilities: Mapping[str, bool] = {"supportsDelayedStackTraceLoading": False}

    def unseen(self, looked: bool) -> bool:
        """A stop of the same thread overtakes the first one, and with a hint nothing is focused."""
        return not looked


class Generic(Dialect):
    """Other clients: a row is `continued` before the focus leaves it, as nvim-dap needs it."""

    def move(self, states: RowStates, old: int | None) -> Script:
        """Free the old row first, or a client may resume the new one by itself."""
        first = (continued(old),) if old is not None and old != states.focus else ()
        return first + self.stop(states)

    def left(self, row: int, *, focus: bool) -> Script:
        """An `exited` alone does not clear a client's stopped thread."""
        gone = thread("exited", row)
        return (continued(row), gone) if focus else (gone,)


class NvimDap(Generic):
    """It sends `continue` by itself for a `stopped` of another thread, but for reason pause."""

    fetches = True
    means_the_row = True

    def late(self, states: RowStates, rows: tuple[int, ...]) -> Script:
        """Mark each without a jump; `allThreadsStopped` or another reason would resume it."""
        pause = RowStates(states.focus, states.running, {"reason": "pause"})
        return tuple(stopped(pause, row, all=False) for row in rows)

    def slow(self, states: RowStates, rows: tuple[int, ...]) -> Script:
        """As late stoppers: the focus' own stop follows."""
        return self.late(states, rows)


class Dape(Dialect):
    """It selects the thread of each `stopped`, and drops its arrow at any `continued`.

    It asks `threads` for each `thread` event too, and a `continued` before a stop is applied makes
    it miss that stop.
    """

    fetches = True

    def applied(self, states: RowStates, stepping: int | None) -> Script:
        """End with the focus again, for the arrow."""
        return _each(states.running) + _arrow(states if states.running else None)

    def late(self, states: RowStates, rows: tuple[int, ...]) -> Script:
        """A few by themselves, the focus last; many as one event."""
        if len(rows) > MAX_SINGLE_STOPS:
            return self.stop(states)
        marks = tuple(stopped(states, row, all=False) for row in rows)
        return (*marks, stopped(states, states.focus, all=False))

    def slow(self, states: RowStates, rows: tuple[int, ...]) -> Script:
        """Wait for the focus: this client cannot mark a row without selecting it."""
        return ()

    def resume_some(self, rows: tuple[int, ...], states: RowStates | None) -> Script:
        """Put the arrow back."""
        return _each(rows) + _arrow(states)

    def joined(self, row: int, states: RowStates | None) -> Script:
        """A new thread sets its mode line to running: put the arrow back."""
        return (thread("started", row), *_arrow(states))


def _arrow(states: RowStates | None) -> Script:
    return (stopped(states, states.focus, all=False),) if states else ()


class DapMuxConsole(Generic):
    """Our own console: its commands name the ranks that they act on."""

    means_the_row = True
    repeats_steps = False


GENERIC: Final = Generic()
AGENT: Final = "dap-mux mcp"
"""The `clientID` of a coding agent."""
NVIM_DAP: Final = NvimDap()
DIALECTS: Final[dict[str, Dialect]] = {  # by `clientID`
    "vscode": VSCode(),
    "neovim": NVIM_DAP,
    "nvim-dap": NVIM_DAP,
    "dape": Dape(),
    "dap-mux console": DapMuxConsole(),
    AGENT: DapMuxConsole(),
}


def dialect_of(client_id: object) -> Dialect:
    """Return the dialect of a client by the `clientID` of its `initialize`."""
    return DIALECTS.get(client_id, GENERIC) if isinstance(client_id, str) else GENERIC


class Focus(Struct):
    """The rank that a client works on; `explicit`: chosen by `scopes`, not only `stackTrace`."""

    rank: DebuggeeId | None = None
    explicit: bool = False
    beside: set[DebuggeeId] = field(default_factory=set)  # stops shown without moving the focus
    # Until this deadline, requests about other ranks are older than the focus.
    held: int | None = None


class Dropped(Struct):
    """The output that a client has lost since it stopped reading; `size` in bytes of UTF-8."""

    lines: int = 0
    size: int = 0


class StopSync(Struct):
    """Whether a client has applied the last `allThreadsStopped` that it was sent.

    It is told only afterwards which rows run, because applying the stop would undo that.
    """

    replies: int = 0  # to `threads`, expected before the stop counts as applied
    redraw: bool = False  # the line of the focus, each time that its stack has been fetched
    row: int | None = None  # of the stop that is not applied yet; None: all are
    timer: int | None = None  # for a client that sends no request


class Client(Struct, eq=False, weakref=True):
    """A DAP client of the session. Its `clientID` sets `dialect`, its attach sets `role`."""

    id: int
    dialect: Dialect = GENERIC
    role: str = ""
    trusted: bool = True
    token: Token | None = None  # that it must present, unless it is trusted
    initialized: bool = False
    configured: bool = False
    leaving: bool = False
    terminated: bool = False  # it was sent `terminated`: no event may follow
    seq: int = 0
    launched: bool = False
    about: InitializeArguments = field(default_factory=InitializeArguments)
    translation: ClientTranslation | None = None  # None: lines, columns, paths are the session's
    arguments: Body = field(default_factory=dict)
    path_map: PathMap = field(default_factory=PathMap)
    attach: ClientRequest | None = None
    open: dict[int, ClientRequest] = field(default_factory=dict)
    focus: Focus = field(default_factory=Focus)
    events: frozenset[str] = frozenset()
    dropped: Dropped | None = None  # set while it does not read
    sync: StopSync = field(default_factory=StopSync)

    @property
    def hears_output(self) -> bool:
        """Whether it gets what ranks print: as an observer, if it has asked for it."""
        listens = self.role == "controller" and self.configured
        return listens or (self.role == "observer" and "output" in self.events)


class ClientRequest(Struct, eq=False):
    """A client's request; answered exactly once."""

    client: Client
    seq: int
    command: str
    arguments: Raw
    number: int = 0
    answered: bool = False
    failed: bool = False  # answered with an internal error: a later answer is ignored
    # Set for requests that we make on the client's behalf: takes the body, or the error.
    reply: Final[Callable[[Body, str], None] | None] = None

    def inner(self, reply: Callable[[Body, str], None]) -> ClientRequest:
        """Return the same request as one of ours, for a part of the answer."""
        return ClientRequest(self.client, self.seq, self.command, self.arguments, reply=reply)
