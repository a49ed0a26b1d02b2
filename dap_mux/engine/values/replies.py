"""Replies of ranks that are asked for a value; a rank without one by a time is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Final, TypeAlias

from msgspec import Struct

from dap_mux.engine.messages.to_ranks import Join, malformed
from dap_mux.engine.state.rank import Pending, Rank, Reply, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import Message
from dap_mux.pure.protocol.rank_messages import Evaluated, read
from dap_mux.pure.rank_sets import RankId


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
