"""A client of the session and its requests: state only, which `clients` and `messages` change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Raw, Struct, field

from dap_mux.engine.admission import Token
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client_dialects import GENERIC, Dialect
from dap_mux.engine.state.client_translation import ClientTranslation
from dap_mux.pathmap import PathMap
from dap_mux.protocol.arguments import InitializeArguments
from dap_mux.rank_sets.debuggees import DebuggeeId


class Focus(Struct):
    """The rank that a client works on; `explicit`: chosen by `scopes`, not only `stackTrace`."""

    rank: DebuggeeId | None = None
    explicit: bool = False
    beside: set[DebuggeeId] = field(default_factory=set)  # stops shown without moving the focus
    held: int | None = (
        None  # until this deadline, requests about other ranks are older than the focus
    )


class Dropped(Struct):
    """The output that a client has lost since it stopped reading; `size` in bytes of UTF-8."""

    lines: int = 0
    size: int = 0


class StopSync(Struct):
    """Whether a client has applied the last `allThreadsStopped` that it was sent.

    It is told only afterwards which rows run, because applying the stop would undo that.
    """

    replies: int = 0  # to `threads`, expected before the stop counts as applied
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
    translation: ClientTranslation | None = (
        None  # None: its lines, columns and paths are the session's
    )
    arguments: Body = field(default_factory=dict)
    path_map: PathMap = field(default_factory=PathMap)
    attach: ClientRequest | None = None
    open: dict[int, ClientRequest] = field(default_factory=dict)
    focus: Focus = field(default_factory=Focus)
    events: frozenset[str] = frozenset()
    dropped: Dropped | None = None  # set while it does not read
    sync: StopSync = field(default_factory=StopSync)

    @property
    def listening(self) -> bool:
        """Whether it gets events of stops, threads and output: a configured controller."""
        return self.role == "controller" and self.configured


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
