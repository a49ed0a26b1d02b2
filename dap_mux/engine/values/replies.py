"""Replies of ranks that are asked for a value; a rank without one by a time is missing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Set
from typing import Final, TypeAlias

from msgspec import Raw, Struct, field

from dap_mux.engine.messages.to_ranks import Join, malformed
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.rank import Connection, Pending, Rank, Reply, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.arguments import EvaluateArguments, FrameArguments, VariablesArguments
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import Body, Message, plain
from dap_mux.pure.protocol.rank_messages import Evaluated, read
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId


def in_one_line(message: str) -> str:
    """Return the end of a traceback: what was raised, and with which words."""
    lines = message.strip().splitlines()
    inside = [index for index, line in enumerate(lines) if line.startswith("  ")]
    return " ".join(lines[inside[-1] + 1 :] if inside else lines) or "failed with no error message"


MAX_KEPT: Final = 64  # answers that differ, and are recognised when they come again
MAX_KEPT_SIZE: Final = 1024  # bytes of each
IN_MAIN: Final = (
    " (it is running: evaluated in the globals of __main__ and where its main thread is)"
)
UNKNOWN_NAME: Final = "NameError: name "


class Answer(Struct, frozen=True, gc=False):
    """A rank's value. `reference`: the rank's own, 0 for none; `handle_of` gives the client's."""

    value: str
    type: str = ""
    reference: int = 0


class Answers(Struct, frozen=True):
    """The replies of a set of ranks. `in_main`: those evaluated in `__main__`, as they run."""

    values: dict[RankId, Answer]
    errors: dict[RankId, str]
    missing: frozenset[RankId]
    in_main: frozenset[RankId]


OnAnswers: TypeAlias = Callable[[Answers], None]


class ReplyCollector:
    """Replies of ranks on their way; `then` is called once: all are there, or the time is up.

    `pending` is what each rank owes, one for all of them.
    """

    def __init__(
        self,
        core: SessionState,
        ranks: Iterable[RankId],
        then: OnAnswers,
        timeout: float,
        ask_again: Callable[[ReplyCollector, Rank], None] | None = None,
    ) -> None:
        """`ask_again`: asks a running rank whose `__main__` lacks a name, in its frames; once."""
        self._core = core
        self._then = then
        self._asked = frozenset(ranks)
        self._left = len(self._asked)  # ranks that may still reply
        self._values: dict[RankId, Answer] = {}
        self._errors: dict[RankId, str] = {}
        self.in_main: set[RankId] = set()
        self._ask_again = ask_again
        self._asked_again: set[RankId] = set()
        self.stops: dict[Rank, Stop] = {}
        self.pending = Pending("evaluate", self._take, None, collect=self._collect)
        self._referenced = False
        # Answers by the `seq` that was asked, whether in `__main__`, and the frame: ranks of one
        # job mostly send the same bytes, and these need no second reading.
        self._known: dict[tuple[int, bool, bytes], Answer] = {}
        self._join = Join(core, [self] if self._left else [], lambda missing: self._tell(), timeout)

    @property
    def waiting(self) -> Set[RankId]:
        """The ranks that may still reply."""
        if self._join.over:
            return frozenset()
        return self._asked - self._values.keys() - self._errors.keys()

    def awaits(self, rank: RankId) -> bool:
        """Whether this rank may still reply."""
        replied = rank in self._values or rank in self._errors
        return rank in self._asked and not replied and not self._join.over

    def answer(self, rank: RankId, answer: Answer) -> None:
        """A rank has a value; what comes too late, or twice, is dropped."""
        if self.awaits(rank):
            self._values[rank] = answer
            self._referenced = self._referenced or answer.reference != 0
            self._arrived()

    def fail(self, rank: RankId, message: str) -> None:
        """A rank has none, and says why."""
        if self.awaits(rank):
            self._errors[rank] = message
            self._arrived()

    def _arrived(self) -> None:
        self._left -= 1
        if not self._left:
            self._join.end()

    def end(self) -> None:
        """Wait no longer: ranks that have not replied are missing."""
        self._join.end()

    def _take(self, reply: Reply) -> None:
        """A rank has answered `evaluate`, or cannot any more."""
        assert reply.rank is not None
        id = reply.rank.rank_id
        if not reply.ok and self._lacks_a_name(id, reply):
            return
        in_main = id in self.in_main
        if not reply.ok:
            message = reply.no_reply_reason or in_one_line(reply.message)
            self.fail(id, message + (IN_MAIN if in_main and not reply.no_reply_reason else ""))
            return
        try:
            self.answer(id, _answer(read(reply.body, Evaluated), in_main=in_main))
        except PeerFault as error:
            self.fail(id, malformed(self._core, reply.rank, "evaluate", error).no_reply_reason)

    def _lacks_a_name(self, id: RankId, reply: Reply) -> bool:
        """Whether it is asked again in its frames."""
        assert reply.rank is not None
        unknown = not reply.no_reply_reason and UNKNOWN_NAME in reply.message
        if not unknown or id not in self.in_main or self._ask_again is None or not self.awaits(id):
            return False
        if id in self._asked_again or not reply.rank.phase.live or reply.rank.stop is not None:
            return False
        self._asked_again.add(id)
        self._ask_again(self, reply.rank)
        return True

    def _collect(self, rank: Rank, seq: int, frame: bytes, message: Message | None) -> bool:
        """Keep an answer unless it is the last. Lean: a thousand come at once."""
        if self._left < 2 or self._join.over:
            return False
        id, in_main = rank.rank_id, bool(self.in_main) and rank.rank_id in self.in_main
        key = seq, in_main, frame
        answer = self._known.get(key)
        if answer is None and message is not None and message.request_seq == seq:
            answer = self._read(message, in_main=in_main)
            if answer is not None and len(frame) <= MAX_KEPT_SIZE and len(self._known) < MAX_KEPT:
                self._known[key] = answer  # others may send it, too; a long one is none of those
        if answer is None or id in self._values:
            return False
        self._values[id] = answer
        self._left -= 1
        return True

    def _read(self, message: Message, *, in_main: bool) -> Answer | None:
        """Return the answer that a message is; None where there is more to it."""
        if message.type != "response" or message.command != "evaluate" or not message.success:
            return None
        try:
            answer = _answer(read(message.body, Evaluated), in_main=in_main)
        except PeerFault:
            return None
        self._referenced = self._referenced or answer.reference != 0
        return answer

    def _tell(self) -> None:
        values = self._values
        if self._referenced:
            values = {id: self._current(id, answer) for id, answer in values.items()}
        missing = self._asked - values.keys() - self._errors.keys()
        self._then(Answers(values, self._errors, missing, frozenset(self.in_main)))

    def _current(self, id: RankId, answer: Answer) -> Answer:
        """Return a value without its reference where the rank has run on meanwhile."""
        rank = self._core.ranks.get(id)
        if not answer.reference or (rank and rank.stop and rank.stop is self.stops.get(rank)):
            return answer
        return Answer(answer.value, answer.type)


def _answer(said: Evaluated, *, in_main: bool) -> Answer:
    """Return what a rank has said. `_IN_MAIN` gives the type's name, then the value."""
    if not in_main:
        return Answer(said.result, said.type or "", said.variablesReference)
    name, newline, value = said.result.partition("\n")
    return Answer(value, name) if newline else Answer(said.result)


def handle_of(core: SessionState, rank: RankId, answer: Answer) -> int:
    """Return the `variablesReference` that a client knows an answer by.

    Valid while `then` runs: later the rank may have run on.
    """
    return core.handles.mint(rank, Kind.VARIABLES, answer.reference) if answer.reference else 0


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
