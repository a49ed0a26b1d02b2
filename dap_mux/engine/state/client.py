"""A client of the session and its requests: state only, which `clients` and `messages` change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Raw, Struct

from dap_mux.engine.admission import Token
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client_dialects import GENERIC, Dialect
from dap_mux.engine.state.client_translation import ClientTranslation
from dap_mux.pathmap import PathMap
from dap_mux.protocol.types import InitializeArguments
from dap_mux.rank_sets.debuggees import DebuggeeId


@dataclass
class Focus:
    """The rank a client works on, and how strongly it said so (scopes beat stackTrace)."""

    rank: DebuggeeId | None = None
    explicit: bool = False
    beside: set[DebuggeeId] = field(default_factory=set)  # stops shown without moving the focus
    held: int | None = None  # a deadline: until then looks at other ranks were asked for earlier


@dataclass
class Dropped:
    """How much output a client has lost since it stopped reading; `size` in bytes of UTF-8."""

    lines: int = 0
    size: int = 0


@dataclass
class StopSync:
    """Whether a client has applied the last `allThreadsStopped` that it was sent.

    Until then it is not told which rows run: applying the stop would undo that.
    """

    replies: int = 0  # to `threads`, that may come before it is applied, or apply it
    row: int | None = None  # that was said to have stopped; None: nothing is left to be applied
    timer: int | None = None  # for a client that asks nothing


@dataclass(eq=False)
class Client:
    """A DAP client of the session. Its `clientID` sets `dialect`, its attach sets `role`."""

    id: int
    dialect: Dialect = GENERIC
    role: str = ""
    trusted: bool = True
    token: Token | None = None  # what it must show, unless it is trusted
    initialized: bool = False
    configured: bool = False
    leaving: bool = False
    terminated: bool = False  # it was told `terminated`: no event follows
    seq: int = 0
    launched: bool = False
    about: InitializeArguments = field(default_factory=InitializeArguments)
    translation: ClientTranslation | None = None  # None: it counts and spells as the session does
    arguments: Body = field(default_factory=dict)
    path_map: PathMap = field(default_factory=PathMap)
    attach: ClientRequest | None = None
    open: dict[int, ClientRequest] = field(default_factory=dict)
    focus: Focus = field(default_factory=Focus)
    events: frozenset[str] = frozenset()
    dropped: Dropped | None = None  # it does not read at present
    sync: StopSync = field(default_factory=StopSync)

    @property
    def listening(self) -> bool:
        """It is a configured controller: told of stops, threads and output."""
        return self.role == "controller" and self.configured


class ClientRequest(Struct, eq=False):
    """A request that one client waits on; answered exactly once."""

    client: Client
    seq: int
    command: str
    arguments: Raw
    number: int = 0
    answered: bool = False
    failed: bool = False  # by a defect of ours: whoever answers it later comes too late
    # Asked by us on the client's behalf: takes the body, or why there is none.
    reply: Callable[[Body, str], None] | None = None
