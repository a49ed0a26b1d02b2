"""Answers of many ranks to one request: what others have said in the same words is read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dap_mux.engine import Settings
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.values.replies import Answer, Answers, ReplyCollector
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import Message, decode, encode_frame
from tests.support.fake_rank.injected_calls import INJECTED

SEQ: Final = 7
BODY: Final = (
    b'{"seq": 3, "type": "response", "request_seq": 7, "success": true, "command": "evaluate", '
    b'"body": {"result": "2.31", "type": "float"}}'
)
FRAME: Final = encode_frame(BODY)
Collect = Callable[[Rank, int, bytes, Message | None], bool]


def collecting(count: int, told: list[Answers]) -> tuple[list[Rank], ReplyCollector, Collect]:
    """Ranks that owe an answer each, who waits for these, and what takes them."""
    core = SessionState(INJECTED, Settings())
    ranks = [Rank(("job", number), Endpoint("127.0.0.1", 5678)) for number in range(count)]
    collector = ReplyCollector(core, [rank.rank_id for rank in ranks], told.append, 5.0)
    assert collector.pending.collect is not None
    return ranks, collector, collector.pending.collect


def test_a_frame_is_known_once_it_has_been_read() -> None:
    ranks, collector, collect = collecting(4, [])
    assert not collect(ranks[0], SEQ, FRAME, None), "nobody has said that before"
    assert collect(ranks[0], SEQ, FRAME, decode(BODY))
    assert collect(ranks[1], SEQ, FRAME, None)
    assert collector.waiting == {("job", 2), ("job", 3)}


def test_an_answer_to_another_request_is_not_taken() -> None:
    ranks, collector, collect = collecting(4, [])
    assert collect(ranks[0], SEQ, FRAME, decode(BODY))
    assert not collect(ranks[1], SEQ + 1, FRAME, None)
    assert not collect(ranks[1], SEQ + 1, FRAME, decode(BODY))
    assert collector.awaits(("job", 1))


def test_the_last_answer_is_an_input_and_a_late_one_is_dropped() -> None:
    """What comes of an answer, the end of the wait, is for the engine to do."""
    ranks, collector, collect = collecting(3, [])
    assert collect(ranks[0], SEQ, FRAME, decode(BODY))
    assert collect(ranks[1], SEQ, FRAME, None)
    assert not collect(ranks[2], SEQ, FRAME, None), "it is the last"
    collector.end()
    assert not collector.waiting
    assert not collect(ranks[2], SEQ, FRAME, decode(BODY)), "it is late"


def test_a_running_ranks_answer_means_something_else() -> None:
    """Of a rank that runs, the type comes in front of the value."""
    body = BODY.replace(b'"2.31"', b'"int\\n2"')
    told: list[Answers] = []
    ranks, collector, collect = collecting(3, told)
    collector.in_main.add(("job", 1))
    frame = encode_frame(body)
    assert collect(ranks[0], SEQ, frame, decode(body))
    assert not collect(ranks[1], SEQ, frame, None), "known of ranks that stand only"
    assert collect(ranks[1], SEQ, frame, decode(body))
    collector.end()
    collector._core.postponed.pop()[0]()
    [answers] = told
    assert answers.values == {("job", 0): Answer("int\n2", "float"), ("job", 1): Answer("2", "int")}
    assert answers.missing == {("job", 2)}
