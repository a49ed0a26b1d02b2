"""Requests to ranks: who owes what, by when.

Every request ends in exactly one `Reply`: the rank's answer, or why there is none (its link
is down, its deadline passed). A reply that comes later than that is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache, partial
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Raw
from msgspec.structs import replace

from dap_mux.engine.outputs import ToRank
from dap_mux.engine.state.rank import Connection, Pending, Rank, Reply
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import Body, Message, Request, encode, raw
from dap_mux.pure.protocol.rank_messages import MALFORMED, Evaluated, read, read_text
from dap_mux.pure.rank_sets.world import DebuggeeId

# Wait until all of several things have happened, or for so long at most.

K = TypeVar("K", bound=Hashable)


class Join(Generic[K]):
    """Calls `done` once: when each of `waiting` has arrived, or `limit` seconds later.

    `done` is given those that have not arrived by then, and is called on behalf of the request for
    which the join was made. With nothing to wait for it is called at once.
    """

    def __init__(
        self,
        core: SessionState,
        waiting: Iterable[K],
        done: Callable[[frozenset[K]], None],
        limit: float | None = None,
    ) -> None:
        self._core = core
        self._done = done
        self._cause = core.cause
        self.waiting = set(waiting)
        self.over = not self.waiting
        self._timer: int | None = None
        if self.over:
            done(frozenset())
        elif limit is not None:
            self._timer = core.after(limit, self.end)

    def arrive(self, one: K) -> None:
        """This one needs not be waited for any more; said twice, or too late, it does no harm."""
        if one in self.waiting:
            self.waiting.remove(one)
            if not self.waiting:
                self.end()

    def end(self) -> None:
        """Wait no longer."""
        if not self.over:
            self.over = True
            self._core.cancel(self._timer)
            self._core.later(partial(self._done, frozenset(self.waiting)), self._cause)


NO_DEADLINE: Final = 0.0
NOT_CONNECTED: Final = "not connected"
# Requests that concern all threads of a rank. Its adapter answers "*", whichever is named, and
# so must we where there is none: debugpy refuses an id that it has not told yet.
OF_ALL_THREADS: Final = frozenset({"continue", "pause"})
T = TypeVar("T")
OnReply: TypeAlias = Callable[[Reply], None]
OnAnswer: TypeAlias = Callable[[T | None, Reply], None]
OnRankReply: TypeAlias = Callable[[Rank, Reply], None]


class Round:
    """Requests of one command to many ranks, with one deadline for all of them.

    `then` is called for each rank, once, on behalf of the client's request at hand.
    """

    def __init__(
        self, core: SessionState, command: str, then: OnRankReply, timeout: float | None = None
    ) -> None:
        self._core = core
        self._then = then
        self._limit = core.settings.request_timeout if timeout is None else timeout
        self._pending = Pending(command, self._answered, None, core.cause)  # what each rank owes
        self._waiting: dict[Rank, tuple[Connection, int]] = {}
        self._deadline: int | None = None

    def ask(self, rank: Rank, message: Broadcast) -> None:
        """Send it to one rank. Lean: this is done a thousand times at once."""
        connection = rank.connection
        if connection.link is None or not rank.phase.linked:
            self._then(rank, Reply(False, no_reply_reason=NOT_CONNECTED, rank=rank))
            return
        if self._deadline is None:
            self._deadline = self._core.after(self._limit, self._expire)
        self._core.send_shared(message, connection, self._pending)
        self._waiting[rank] = connection, message.seq

    def _answered(self, reply: Reply) -> None:
        rank = reply.rank
        assert rank is not None
        self._waiting.pop(rank, None)
        if not self._waiting:
            self._core.cancel(self._deadline)
            self._deadline = None
        self._then(rank, reply)

    def _expire(self) -> None:
        self._deadline = None
        late, self._waiting = self._waiting, {}
        for rank, (connection, seq) in late.items():
            pending = connection.pending.pop(seq, None)
            if pending is not None:
                reply = Reply(False, no_reply_reason=_too_late(self._limit), rank=rank)
                self._core.later(partial(pending.then, reply), pending.cause)


def ask(
    core: SessionState,
    rank: Rank,
    command: str,
    arguments: Raw | Body,
    then: OnReply,
    timeout: float | None = None,
) -> None:
    """Send one request; `timeout` in seconds, None for the usual one, `NO_DEADLINE` for none."""
    connection = rank.connection
    if connection.link is None or not rank.phase.linked:
        then(Reply(False, no_reply_reason=NOT_CONNECTED))
        return
    if connection.direct and command in OF_ALL_THREADS and isinstance(arguments, dict):
        arguments = {**arguments, "threadId": "*"}
    seq = core.next_seq(connection)
    limit = core.settings.request_timeout if timeout is None else timeout
    token = core.after(limit, lambda: _expire(connection, seq, limit)) if limit else None
    connection.pending[seq] = Pending(command, then, token, core.cause)
    core.out.append(ToRank(connection.link, encode(Request(seq, command, arguments))))


def ask_for(
    core: SessionState,
    rank: Rank,
    command: str,
    arguments: Raw | Body,
    kind: type[T],
    then: OnAnswer[T],
    timeout: float | None = None,
) -> None:
    """Send one request; `then` gets the decoded body, or None and the reply that says why."""

    def decoded(reply: Reply) -> None:
        if not reply.ok:
            then(None, reply)
            return
        try:
            body = read(reply.body, kind)
        except PeerFault as error:
            then(None, malformed(core, rank, command, error))
        else:
            then(body, reply)

    ask(core, rank, command, arguments, decoded, timeout)


def evaluate(
    core: SessionState,
    rank: Rank,
    expression: str,
    decode: Callable[[str], T],
    then: OnAnswer[T],
) -> None:
    """Evaluate one of ours, without a frame; `then` gets what `decode` makes of its result."""

    def evaluated(said: Evaluated | None, reply: Reply) -> None:
        if said is None:
            then(None, reply)
            return
        try:
            value = decode(said.result)
        except PeerFault as error:
            then(None, malformed(core, rank, "evaluate", error))
        else:
            then(value, reply)

    ask_for(core, rank, "evaluate", _watched(expression), Evaluated, evaluated)


@lru_cache(maxsize=8)
def _watched(expression: str) -> Raw:
    """Return the arguments; the patches are of 20 KB, and the same for most ranks."""
    return raw({"expression": expression, "context": "watch"})


def malformed(core: SessionState, rank: Rank, command: str, error: PeerFault) -> Reply:
    """Log that a rank's answer is not what DAP says, and return why there is none."""
    core.warn("rank", f"{MALFORMED} to {command!r}: {error}", rank)
    return Reply(False, no_reply_reason=MALFORMED, rank=rank)


def _expire(connection: Connection, seq: int, limit: float) -> None:
    pending = connection.pending.pop(seq, None)
    if pending:
        pending.then(Reply(False, no_reply_reason=_too_late(limit)))


def _too_late(limit: float) -> str:
    return f"no answer within {limit:g} s"


def answered(core: SessionState, rank: Rank, message: Message) -> None:
    """A response came from a rank; one that is not awaited is dropped."""
    pending = rank.connection.pending.pop(message.request_seq, None)
    if pending is None or pending.command != message.command:
        if pending:
            rank.connection.pending[message.request_seq] = pending
        core.warn("rank", f"dropped an unexpected response to {message.command!r}", rank)
        return
    if pending.deadline is not None:
        core.cancel(pending.deadline)
    core.cause = pending.cause
    pending.then(Reply(message.success, message.body, message.message, "", rank))


def fail_pending(core: SessionState, rank: Rank, reason: str) -> None:
    """The link is gone: whatever the rank owed is answered by `reason`."""
    reason = reason or "its connection has ended"  # none is the rank's own answer
    owed, rank.connection.pending = rank.connection.pending, {}
    for pending in owed.values():
        core.cancel(pending.deadline)
    for pending in owed.values():
        reply = Reply(False, no_reply_reason=reason, rank=rank)
        core.later(partial(pending.then, reply), pending.cause)


def when_answered(
    core: SessionState,
    rank: Rank,
    command: str,
    then: Callable[[], None],
    limit: float | None = None,
) -> None:
    """Call `then` once no `command` is owed any more, at the latest after `limit` seconds."""
    pending = rank.connection.pending
    owed = {seq: each for seq, each in pending.items() if each.command == command}
    join = Join(core, owed, lambda missing: then(), limit)

    def answered(seq: int, reply: Reply) -> None:
        owed[seq].then(reply)
        join.arrive(seq)

    for seq, each in owed.items():
        pending[seq] = replace(each, then=partial(answered, seq))


def gather(
    core: SessionState,
    ranks: Iterable[Rank],
    command: str,
    message: Callable[[Rank], Broadcast],
    then: Callable[[dict[DebuggeeId, Reply]], None],
    timeout: float | None = None,
) -> None:
    """Fan out one request and call `then` once, when every rank answered or is given up."""
    asked = list(ranks)
    replies: dict[DebuggeeId, Reply] = {}
    join = Join(core, (rank.id for rank in asked), lambda missing: then(replies))

    def answered(rank: Rank, reply: Reply) -> None:
        replies[rank.id] = reply
        join.arrive(rank.id)

    requests = Round(core, command, answered, timeout)
    for rank in asked:
        requests.ask(rank, message(rank))


# One expression of ours to many ranks, whose result is JSON that is decoded where it comes in.

Result: TypeAlias = "tuple[T | None, Reply]"
"""The value of a rank's expression, or None and the reply that says why."""


def gather_results(
    core: SessionState,
    ranks: Iterable[Rank],
    expression: Callable[[Rank], str],
    kind: type[T],
    then: Callable[[dict[DebuggeeId, Result[T]]], None],
    timeout: float | None = None,
) -> None:
    """Evaluate in each rank; `then` is called once every rank has answered or is given up.

    `timeout` in seconds, None for the usual one.
    """
    messages: dict[str, Broadcast] = {}
    values: dict[bytes, T | None] = {}

    def answered(replies: dict[DebuggeeId, Reply]) -> None:
        then({id: _known(values, reply, kind) for id, reply in replies.items()})

    def message(rank: Rank) -> Broadcast:
        text = expression(rank)
        if text not in messages:
            arguments = {"expression": text, "context": "watch"}
            messages[text] = Broadcast("evaluate", arguments)
        return messages[text]

    gather(core, ranks, "evaluate", message, answered, timeout)


def _known(values: dict[bytes, T | None], reply: Reply, kind: type[T]) -> Result[T]:
    """Decode a reply, unless another rank has said the same: most do."""
    text = bytes(reply.body)
    known = values.get(text) if reply.ok else None
    if known is not None:
        return known, reply
    values[text], said = _result(reply, kind)
    return values[text], said


def _result(reply: Reply, kind: type[T]) -> Result[T]:
    """Decode one; what is malformed is not logged, because ranks are asked again and again."""
    if not reply.ok:
        return None, reply
    try:
        return read_text(read(reply.body, Evaluated).result, kind), reply
    except PeerFault:
        return None, Reply(False, no_reply_reason=MALFORMED, rank=reply.rank)
