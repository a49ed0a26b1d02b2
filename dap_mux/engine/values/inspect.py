"""Requests for the data of one rank: the owner of the handle, or the rank in focus."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from msgspec import Raw, Struct, field

from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.source_files.contents import Sources
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Connection, Rank, Reply, Stop
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.pure.errors import PeerFault, StaleHandle
from dap_mux.pure.protocol.arguments import (
    EvaluateArguments,
    ThreadArguments,
    VariablesArguments,
)
from dap_mux.pure.protocol.exchange import Fields, Id, Kind, exchange, handles_of
from dap_mux.pure.protocol.handle_fields import RESPONSES
from dap_mux.pure.protocol.messages import Body, plain
from dap_mux.pure.protocol.rank_messages import read
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets.world import DebuggeeId

# A user's evaluate may take as long as it takes while the link lives.
NO_TIME_LIMIT: Final = frozenset({"evaluate", "setVariable", "setExpression"})
NO_IDS: Final = Fields()  # of debugpy's own requests, which the schema does not know
EXPLICIT: Final = frozenset({"scopes", "evaluate"})
ANSWERING: Final = (Phase.LIVE, Phase.STARTING, Phase.CONFIGURING)  # best first
NO_RANK: Final = "no rank is attached yet"
ALL_ENDED: Final = "every rank has ended; `dap-mux list` shows how"


class _Early(Struct, eq=False):
    """A request that came before any rank could take it."""

    request: ClientRequest
    arguments: Raw
    timer: int | None = None


class ShownFrame(NamedTuple):
    """A frame of a stop that a client has an id of; `depth` 0 is the innermost."""

    rank: Rank
    stop: Stop
    depth: int


def frame_of(core: SessionState, frame: int) -> ShownFrame | None:
    """Return the frame that a client means, None for one that is stale."""
    try:
        id, upstream_id = core.handles.resolve(Kind.FRAME, frame)
    except StaleHandle:
        return None
    rank = core.ranks[id]
    if rank.stop is None or upstream_id not in rank.stop.frame_ids:
        return None
    return ShownFrame(rank, rank.stop, rank.stop.frame_ids.index(upstream_id))


# Ids are exchanged on the way in and out by the handle-field table; everything else in the message
# stays as it was. A reply that comes after its rank has run on carries ids of a stop that is over,
# so it becomes an error rather than somebody else's data later.
class Inspector(Struct, eq=False):
    """The engine's part that passes one client's question to one rank."""

    _core: SessionState
    _view: View
    _client_events: ClientEvents
    _sources: Sources
    _kinds: Mapping[str, type[Struct]]  # of the arguments of each request
    _last: LastAnswers
    _early: list[_Early] = []

    def to_owner(self, request: ClientRequest, *, or_focus: bool = False) -> None:
        """Pass a request to the rank that owns its handle, or answer it as before.

        Editors also show frames whose ranks have resumed since.
        """
        try:
            arguments, rank = self._resolved(request)
        except StaleHandle:
            body = self._last.of_stale(request)
            if body is None:
                raise
            to_clients.respond(self._core, request, body)
            return
        rank = rank or (self._focus(request) if or_focus else None)
        if rank is not None:
            self._ask(request, rank, arguments)
        elif or_focus:
            self._wait_for_rank(request, arguments)
        else:
            raise StaleHandle(f"{request.command} needs the id of a thread, frame or variable")

    def to_owner_or_focus(self, request: ClientRequest) -> None:
        """Pass a request to its handle's owner, or to the rank in focus where it has none."""
        self.to_owner(request, or_focus=True)

    def _wait_for_rank(self, request: ClientRequest, arguments: Raw) -> None:
        """Ranks that are being attached may be asked in a moment, as one by itself may."""
        states = {rank.phase.state for rank in self._core.sorted_ranks()}
        if "connecting" not in states:
            problem = ALL_ENDED if states == {Phase.GONE.state} else NO_RANK
            to_clients.refuse(self._core, request, problem)
            return
        early = _Early(request, arguments)

        def give_up() -> None:
            self._early.remove(early)
            to_clients.refuse(self._core, request, NO_RANK)

        early.timer = self._core.after(self._core.settings.request_timeout, give_up)
        self._early.append(early)

    def rank_answers(self, rank: Rank) -> None:
        """A rank takes requests now: ask it what was asked before any rank did."""
        early, self._early = self._early, []
        for one in early:
            self._core.cancel(one.timer)
            if one.request.client.id in self._core.clients:
                ask = partial(self._ask, one.request, rank, one.arguments)
                self._core.later(ask, one.request)

    def source(self, request: ClientRequest) -> None:
        """`source`: a text that is kept or fetched; else the rank's own word on it."""
        if not self._sources.answer(request):
            self.to_owner_or_focus(request)

    def exception_info(self, request: ClientRequest) -> None:
        """`exceptionInfo`, only after an exception stop: debugpy never answers it otherwise."""
        arguments, rank = self._resolved(request)
        if rank is None or rank.stop is None or rank.stop.reason != "exception":
            text = "this thread is not stopped at an exception"
            to_clients.refuse(self._core, request, text)
            return
        self._ask(request, rank, arguments)

    def _focus(self, request: ClientRequest) -> Rank | None:
        ranks = self._core.sorted_ranks()
        best = (rank for phase in ANSWERING for rank in ranks if rank.phase is phase)
        return focused(self._core, request.client) or next(best, None)

    def _resolved(self, request: ClientRequest) -> tuple[Raw, Rank | None]:
        """Exchange the ids in the arguments; return them and the one rank they belong to."""
        owners: list[Rank] = []
        fields = handles_of(self._kinds[request.command])

        def translate(kind: Kind, id: Id) -> Id:
            if kind is Kind.SOURCE and self._sources.owns(id):
                return 0  # a path says as much to any rank
            if kind is Kind.THREAD:
                members, thread = self._view.resolve(request.client, id)
                owners.append(members[0])
                return thread
            owner, upstream_id = self._core.handles.resolve(kind, id)
            owners.append(self._core.ranks[owner])
            if kind is Kind.FRAME and request.command in EXPLICIT:
                _looked_at(request.client, owner, explicit=True)
            return upstream_id

        arguments = exchange(request.arguments, fields, translate)
        if len(owners) > 1 and any(owner is not owners[0] for owner in owners):
            raise StaleHandle("these ids belong to different ranks")
        return arguments, owners[0] if owners else None

    def _ask(self, request: ClientRequest, rank: Rank, arguments: Raw) -> None:
        command = request.command
        if command == "stackTrace":
            _looked_at(request.client, rank.id, explicit=False)
        stop = rank.stop
        limit = to_ranks.NO_DEADLINE if command in NO_TIME_LIMIT else None

        def answered(reply: Reply) -> None:
            self._answer(request, rank, stop, reply)

        to_ranks.ask(self._core, rank, command, arguments, answered, limit)

    def _answer(self, request: ClientRequest, rank: Rank, stop: Stop | None, reply: Reply) -> None:
        if reply.ok:
            self._pass_body(request, rank, stop, reply)
            return
        if self._has_run_on(request, rank, stop):
            return
        if reply.no_reply_reason:
            text = f"{self._view.name_of(rank)}: {reply.no_reply_reason}"
            to_clients.refuse(self._core, request, text)
        else:
            to_clients.refuse(
                self._core, request, without_debugger_frames(reply.message), to_clients.RANK_ERROR
            )
        self._followed_up(request)

    def _is_too_late(self, request: ClientRequest, rank: Rank, stop: Stop | None) -> None:
        if stop is None and request.command == "stackTrace":
            # It has stopped since it was asked: nvim-dap asks as soon as `pause` is answered.
            self._core.later(partial(self.to_owner, request), request)
            return
        if self._has_run_on(request, rank, stop):
            return
        text = f"{self._view.name_of(rank)} has run on meanwhile"
        to_clients.refuse(self._core, request, text)
        self._followed_up(request)

    def _has_run_on(self, request: ClientRequest, rank: Rank, stop: Stop | None) -> bool:
        """Answer as before where the rank, attached all the while, has run on since it was asked.

        Without a stop there was nothing to run on from: a running rank is asked without a frame.
        """
        if stop is None or rank.stop is stop or not rank.phase.live:
            return False
        body = self._last.instead(request, rank)
        if body is not None:
            to_clients.respond(self._core, request, body)
        return body is not None

    def _followed_up(self, request: ClientRequest) -> None:
        """Deliver what follows a stack after it, however late the stack is."""
        if request.command == "stackTrace":
            row = typed(request.arguments, ThreadArguments).threadId
            self._client_events.stack_answered(request.client, row)

    def _pass_body(
        self, request: ClientRequest, rank: Rank, stop: Stop | None, reply: Reply
    ) -> None:
        fields = RESPONSES.get(request.command, NO_IDS)
        if not fields or not reply.body:
            to_clients.respond(self._core, request, reply.body or None)
            self._followed_up(request)
            return
        minted = False

        def translate(kind: Kind, id: Id) -> Id:
            nonlocal minted
            minted = True
            if rank.stop is not stop:
                return id  # of a stop that is over: not to be given out
            return self._core.handles.mint(rank.id, kind, id)

        try:
            body = exchange(reply.body, fields, translate)
        except PeerFault as error:
            reply = to_ranks.malformed(self._core, rank, request.command, error)
            self._answer(request, rank, stop, reply)
            return
        if minted and rank.stop is not stop:
            self._is_too_late(request, rank, stop)
            return
        if request.command != "stackTrace":
            self._last.keep(request, rank, body)
            to_clients.respond(self._core, request, body)
            return

        def marked(stack: Raw) -> None:
            to_clients.respond(self._core, request, stack)
            self._followed_up(request)

        self._sources.mark(request.client, rank, body, marked)


# Keeps the latest answers, for requests about frames whose ranks have resumed since.
#
# With F10 held down an editor asks for the scopes and variables of stops that are over when it
# asks. An error would colour its panes red at each step; debugpy itself answers such requests, too.
# So the last answers are kept, for the requests that only show something. What changes something,
# or what somebody types, is refused as before, and so are ids of a process or a connection that is
# gone.
#
# A trail is the way to a value: the name of its scope, then the names of the variables down to it.
# So the children of a value are found again although each stop gives them other references.

SHOWN: Final = frozenset({"watch", "hover"})  # contexts of `evaluate` that only show something
MAX_RANKS: Final = 16  # those that somebody has looked at last
MAX_ANSWERS: Final = 64  # of each
MAX_BYTES: Final = 32_768  # of one; a longer one is not kept
MAX_REFERENCES: Final = 8_192
Trail: TypeAlias = tuple[str, ...]
SHOWN_OF: Final = {  # the id that a request is about
    "scopes": (Kind.FRAME, "frameId"),
    "variables": (Kind.VARIABLES, "variablesReference"),
    "evaluate": (Kind.FRAME, "frameId"),
}
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
        kind, field = SHOWN_OF.get(request.command, (Kind.FRAME, ""))
        rank = self._core.handles.resumed(kind, plain(request.arguments).get(field) or 0)
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


def _looked_at(client: Client, rank: DebuggeeId, *, explicit: bool) -> None:
    """Note the rank of a client's request: `scopes` and a frame's `evaluate` beat `stackTrace`.

    An editor fetches the stack of each stop by itself, which does not move the focus. Nor does a
    request about the old focus that was already under way when the focus moved.
    """
    by_itself = client.focus.explicit or rank in client.focus.beside
    overtaken = client.focus.held is not None and rank != client.focus.rank
    if (explicit or not by_itself) and not overtaken:
        client.focus.rank = rank
        client.focus.explicit = client.focus.explicit or explicit


# Shortens the error messages of expressions that failed in a rank.

_TITLE: Final = "Traceback (most recent call last):\n"
# A frame of a traceback: its first line, and the deeper lines that belong to it.
_OF_PYDEVD: Final = r'(?m)^  File "[^"\n]*[/\\\\]_pydevd_bundle[/\\\\][^\n]*\n(?:    [^\n]*\n)*'
_OF_THE_PROGRAM: Final = r'(?m)^  File "[^\n]*, in '


def without_debugger_frames(text: str) -> str:
    """Return a traceback without the frames of pydevd, which say nothing of the expression.

    For what is no Python, none is left: then it reads as where Python itself prints it.
    """
    if not text.startswith(_TITLE):
        return text
    kept = re.sub(_OF_PYDEVD, "", text)
    return kept if re.search(_OF_THE_PROGRAM, kept) else kept.removeprefix(_TITLE)
