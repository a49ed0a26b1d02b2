"""Rounds of a barrier that may fail: ranks that are out of step, and ranks that stay away."""

from __future__ import annotations

from typing import Any

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, SETTLED, attached, reasons, told_by_us
from tests.engine.test_barriers import arrive, runs, stops, waiting
from tests.engine.test_breakpoints import set_one
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client


def late(book: Playbook, /, **wanted: Any) -> Client:
    """A client that sets a barrier into ranks that run."""
    client = attached(book)
    with book.quietly("the breakpoint is a barrier"):
        set_one(client, **(wanted or {"condition": "barrier"}))
    return client


def test_set_while_ranks_run(play: Play) -> None:
    """Rank 1 has passed the line and waits for rank 0: that is let go, and then they are in step.

    After they have met they wait for each other as long as it takes.
    """
    book, client = play.scene(2, late)
    arrive(book, 0)
    book.wait(0.9)
    assert runs(book, 0) == []
    book.wait(0.1)
    assert runs(book, 0) == [0]
    assert stops(client) == 0
    arrive(book, 1, 0)
    assert stops(client) == 1
    client.ask("continue", threadId=1)
    arrive(book, 0)
    book.wait(600)
    assert reasons(client) == ["barrier 1/2", None]


def test_ranks_that_are_three_seconds_apart_meet(play: Play) -> None:
    """Each further round has twice the patience."""
    book, client = play.scene(2, late)
    for patience in (1, 2):
        arrive(book, 0)
        book.wait(patience)
        assert runs(book, 0) == [0]
    arrive(book, 0)
    book.wait(3)
    arrive(book, 1)
    assert stops(client) == 1


def test_who_is_missing_is_told_though_rounds_fail(play: Play) -> None:
    """Once others have waited for 5 s altogether; and once."""
    book, client = play.scene(2, late)
    for patience in (1, 2):
        arrive(book, 0)
        book.wait(patience)
    arrive(book, 0)
    book.wait(1.9)
    assert told_by_us(client) == []
    book.wait(0.1)
    (told,) = told_by_us(client)
    assert told.startswith("dap-mux: barrier 1/2 at line 6 for 5 s; missing: rank 1 running at ")
    book.wait(10)
    arrive(book, 0)
    book.wait(20)
    assert len(told_by_us(client)) == 1


def test_a_missing_rank_that_is_stopped_is_waited_for(play: Play) -> None:
    """Its user has not let it run yet."""
    book, client = play.scene(2, late)
    with book.quietly("rank 1 stops elsewhere"):
        book.rank(1).stops("breakpoint", 8)
        book.wait(1)
    arrive(book, 0)
    book.wait(60)
    assert runs(book, 0) == []
    client.ask("continue", threadId=book.thread(1))
    arrive(book, 1)
    assert stops(client) == 2


def test_set_while_all_are_stopped(play: Play) -> None:
    """Ranks that are in step wait for each other from the first time on."""
    book, client = play.stopped(2)
    set_one(client, condition="barrier")
    client.ask("continue", threadId=1)
    with book.quietly("another breakpoint is added, while they run"):
        barrier = {"line": LINE, "condition": "barrier"}
        client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[barrier, {"line": 8}])
    arrive(book, 0)
    book.wait(600)
    assert runs(book, 0) == []


def test_who_is_paused_there_stays_when_the_round_fails(play: Play) -> None:
    book, client = play.scene(3, late)
    arrive(book, 0, 1)
    client.ask("pause", threadId=book.thread(0), singleThread=True)
    book.wait(1)
    assert runs(book, 0, 1) == [1]
    client.ask("continue", threadId=book.thread(0))
    assert runs(book, 0) == [0]


def test_who_is_missing_after_a_time(play: Play) -> None:
    """With the place of each, which no rank is stopped for."""
    book = play(4, barrier_timeout=10.0)
    client = waiting(book, 0)
    with book.quietly("rank 1 stops elsewhere, and rank 2 is lost"):
        book.rank(1).stops("pause", 8)
        book.wait(1)
    book.wait(10)
    (told,) = told_by_us(client)
    assert told.startswith("dap-mux: barrier 1/4 at line 6 for 10 s; missing: ranks 2-3 running at")
    assert told.endswith(
        "train.py:12 in <module>; rank 1 stopped at train.py:8 in train; "
        "`cast 0 c` lets those that wait run on\n"
    )


def test_who_is_missing_and_does_not_answer(play: Play) -> None:
    """As good as dead: it is waited for until its process has ended."""
    book = play(3, barrier_timeout=10.0)
    client = waiting(book, 0, 1)
    book.rank(2).silent.add("evaluate")
    book.wait(20)
    (told,) = told_by_us(client)
    assert told == (
        "dap-mux: barrier 2/3 at line 6 for 10 s; missing: rank 2 does not answer: "
        "no answer within 5 s; `cast 0-1 c` lets those that wait run on\n"
    )
    assert stops(client) == 0
    book.absent.add(("job", 2))
    book.lose(2)
    book.wait(SETTLED)
    assert [told["description"] for told in client.of("stopped")] == ["At barrier 2/2"]


def test_who_is_missing_is_told_after_5_s_and_once(play: Play) -> None:
    book, client = play.scene(2, waiting, 0)
    book.wait(4.9)
    assert told_by_us(client) == []
    book.wait(600)
    (told,) = told_by_us(client)
    assert told.startswith("dap-mux: barrier 1/2 at line 6 for 5 s; missing: rank 1 running at ")
    assert reasons(client) == ["barrier 1/2", None], "it waits on"
    client.ask("evaluate", expression="cast 0 c", context="repl")
    assert runs(book, 0) == [0]
