"""`why` with `slow`: ranks watch themselves for some seconds, and are asked what they have seen."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from dap_mux.engine.job_insight.slow_ranks import LOOKS_S
from tests.engine.conftest import Play
from tests.support.scripted.playbook import Playbook
from tests.unit.insight.test_slow import Job, work

PACES: Final = Job(work(2), 3).paces()


def seen(book: Playbook, *ranks: int) -> None:
    """The looks of these are over."""
    for number in ranks:
        book.ranks["job", number].data.pace = msgspec.to_builtins(PACES["job", number])


def test_the_rank_that_makes_the_others_wait_is_named(play: Play) -> None:
    book, client = play.attached(3)
    answer = client.ask("why", slow=True)
    seen(book, 0, 1, 2)
    with book.quietly("what ranks have seen"):
        book.wait(LOOKS_S[0])
    body = answer.body
    assert body["verdict"] == "slow-rank"
    assert body["sentence"].startswith("rank 2 is last in 100% of ")
    (suspect,) = body["suspects"]
    assert (suspect["ranks"], suspect["stack"][0]["line"]) == ("2", 20)
    assert body["slow"]["delay"] == pytest.approx(0.04, abs=0.005)


def test_looks_that_last_longer_are_waited_for(play: Play) -> None:
    book, client = play.attached(3)
    for rank in book.ranks.values():
        rank.data.pace = None
    answer = client.ask("why", slow=True)
    seen(book, 0)
    with book.quietly("what a rank has seen"):
        book.wait(LOOKS_S[0])
    seen(book, 1, 2)
    with book.quietly("what ranks have seen"):
        book.wait(LOOKS_S[1])
    assert answer.body["verdict"] == "slow-rank"


@pytest.mark.parametrize("pace", ["nonsense", {"calls": [[0, 0, 0, 1, 1, 1]]}, None])
def test_a_rank_that_tells_nothing_leaves_it_undecided(play: Play, pace: Any) -> None:
    book, client = play.attached(3)
    answer = client.ask("why", slow=True)
    seen(book, 0, 1)
    book.ranks["job", 2].data.pace = pace
    with book.quietly("what ranks have seen"):
        book.wait(sum(LOOKS_S))
    assert answer.body["verdict"] == "undecided"
    assert answer.body["evidence"][-1].startswith("rank 2 ")


def test_a_rank_in_the_debugger_is_named_with_the_answer(play: Play) -> None:
    book, client = play.stopped(3, 1)
    answer = client.ask("why", slow=True)
    seen(book, 0, 1, 2)
    with book.quietly("what ranks have seen"):
        book.wait(LOOKS_S[0])
    assert "rank 1 is stopped in the debugger" in answer.body["evidence"]
