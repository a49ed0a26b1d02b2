"""One expression of ours to many ranks, whose result is JSON that is decoded where it comes in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from dap_mux.engine.messages import to_ranks
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.errors import PeerFault
from dap_mux.protocol.rank_messages import MALFORMED, Evaluated, read, read_text
from dap_mux.rank_sets.debuggees import DebuggeeId

T = TypeVar("T")
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

    to_ranks.gather(core, ranks, "evaluate", message, answered, timeout)


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
