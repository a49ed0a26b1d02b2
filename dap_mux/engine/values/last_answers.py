"""Keeps the latest answers, for requests about frames whose ranks have resumed since.

With F10 held down an editor asks for the scopes and variables of stops that are over when it asks.
An error would colour its panes red at each step; debugpy itself answers such requests, too. So the
last answers are kept, for the requests that only show something. What changes something, or what
somebody types, is refused as before, and so are ids of a process or a connection that is gone.

A trail is the way to a value: the name of its scope, then the names of the variables down to it. So
the children of a value are found again although each stop gives them other references.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

from msgspec import Raw, Struct, field

from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.rank import Connection, Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.arguments import EvaluateArguments, FrameArguments, VariablesArguments
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import Body, plain
from dap_mux.pure.protocol.rank_messages import read
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets.debuggees import DebuggeeId

SHOWN: Final = frozenset({"watch", "hover"})  # contexts of `evaluate` that only show something
MAX_RANKS: Final = 16  # those that somebody has looked at last
MAX_ANSWERS: Final = 64  # of each
MAX_BYTES: Final = 32_768  # of one; a longer one is not kept
MAX_REFERENCES: Final = 8_192
Trail: TypeAlias = tuple[str, ...]
EMPTY: Final[dict[str, Body]] = {
    "scopes": {"scopes": []},
    "variables": {"variables": []},
    "evaluate": {"result": "", "variablesReference": 0},
}


class _NamedValue(Struct):
    name: str = ""
    variablesReference: int = 0


class _NamedValues(Struct):
    scopes: list[_NamedValue] = []
    variables: list[_NamedValue] = []
    variablesReference: int = 0


class _Shown(Struct, frozen=True):
    """The value that a read-only request asks for."""

    trail: Trail
    how: str = ""  # which of the children, and in which format


class _Unread(Struct, frozen=True):
    """A request and its answer, as they are: most are never wanted again.

    Not the `ClientRequest`, which would keep its client, also long after that has left.
    """

    command: str
    arguments: Raw
    body: Raw


class _KeptAnswers(Struct):
    """The latest answers of one rank over one connection."""

    connection: Connection
    unread: deque[_Unread] = field(default_factory=lambda: deque(maxlen=MAX_ANSWERS))
    answers: Recent[tuple[Trail, str], Raw] = field(default_factory=lambda: Recent(MAX_ANSWERS))


class LastAnswers:
    """The newest answers to `scopes`, `variables` and `evaluate`, for each rank looked at."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._told: Recent[DebuggeeId, _KeptAnswers] = Recent(MAX_RANKS)
        self._trails: Recent[int, Trail] = Recent(MAX_REFERENCES)

    def keep(self, request: ClientRequest, rank: Rank, body: Raw) -> None:
        """Remember an answer, with the session's ids. Lean: this is done for each of them."""
        if request.command not in EMPTY or len(body) > MAX_BYTES:
            return
        told = self._told.get(rank.id)
        if told is None or told.connection is not rank.connection:
            told = self._told[rank.id] = _KeptAnswers(rank.connection)
        self._told.move_to_end(rank.id)
        told.unread.append(_Unread(request.command, request.arguments, body))

    def _read(self, told: _KeptAnswers) -> None:
        """Find out what the newest answers are about."""
        while told.unread:
            unread = told.unread.popleft()
            asked = self._asked(unread.command, unread.arguments)
            if asked is None:
                continue
            try:
                children = read(unread.body, _NamedValues)
            except PeerFault:
                continue
            for child in (*children.scopes, *children.variables):
                if child.variablesReference:
                    self._trails[child.variablesReference] = (*asked.trail, child.name)
            if children.variablesReference:
                self._trails[children.variablesReference] = asked.trail
            told.answers[asked.trail, asked.how] = unread.body

    def of_stale(self, request: ClientRequest) -> Raw | Body | None:
        """Return the answer to a request whose id was of a stop that is over; else None."""
        kind, id = self._named(request)
        rank = self._core.handles.resumed(kind, id)
        if rank is None or rank not in self._core.ranks:
            return None
        return self.instead(request, self._core.ranks[rank])

    def instead(self, request: ClientRequest, rank: Rank) -> Raw | Body | None:
        """Return the last answer, or an empty one, if the request only shows something."""
        told = self._told.get(rank.id)
        known = None
        if told is not None:
            self._read(told)
        asked = self._asked(request.command, request.arguments)
        if asked is None:
            return None
        if told is not None and told.connection is rank.connection:
            known = told.answers.get((asked.trail, asked.how))
        return known or EMPTY[request.command]

    def _named(self, request: ClientRequest) -> tuple[Kind, int]:
        """Return the id that a request is about; none, if its kind has none."""
        match request.command:
            case "scopes":
                return Kind.FRAME, typed(request.arguments, FrameArguments).frameId
            case "variables":
                asked = typed(request.arguments, VariablesArguments)
                return Kind.VARIABLES, asked.variablesReference
            case "evaluate":
                return Kind.FRAME, typed(request.arguments, EvaluateArguments).frameId or 0
        return Kind.FRAME, 0

    def _asked(self, command: str, arguments: Raw) -> _Shown | None:
        match command:
            case "scopes":
                return _Shown(())
            case "variables":
                id = typed(arguments, VariablesArguments).variablesReference
                rest = {**plain(arguments)}
                del rest["variablesReference"]
                trail = self._trails.get(id)  # of a value that was printed, say, there is none
                if trail is not None:
                    return _Shown(trail, str(sorted(rest.items())))
            case "evaluate":
                asked = typed(arguments, EvaluateArguments)
                if asked.frameId is not None and asked.context in SHOWN:
                    return _Shown((f"= {asked.expression}",))
        return None
