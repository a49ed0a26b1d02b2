"""While ranks are stopped: which clocks run, and who is asked about them, once."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, all_stopped, attached, stopped
from tests.support.fake_rank.injected_calls import calls_of
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

PATIENCE: Final = 5.0
TORCH: Final[dict[str, Any]] = {"before": [1800.0]}


def waiting(seconds: float, limit: float = 1800.0) -> dict[str, Any]:
    """A rank that has been in a collective for so long."""
    return {**TORCH, "waiting": [["all_reduce", limit, seconds]]}


def asked(book: Playbook, number: int, function: str = "look") -> int:
    """How often a rank was asked about its clocks."""
    return calls_of(book.rank(number).data.evaluated, "timeout_probe", function)


def put_back(book: Playbook, number: int) -> int:
    """How often a rank was told to have its time-outs as before."""
    return asked(book, number, "put_back")


def said(client: Client) -> list[str]:
    """What the client was told about clocks."""
    return [
        f"{body['category']}: {body['output'].strip()}"
        for body in client.of("output")
        if "dap-mux: " in body["output"]
    ]


def torch_job(play: Play, count: int = 3) -> Playbook:
    book = play(count, clock_patience=PATIENCE)
    for rank in book.ranks.values():
        rank.data.clocks = TORCH
    return book


def test_a_stop_that_lasts(play: Play) -> None:
    """Two ranks wait for the stopped one: all are asked, time-outs are put up, and put back."""
    book = torch_job(play)
    for number in (1, 2):
        book.rank(number).data.clocks = waiting(30 + number)
    client = stopped(book, 0)
    book.wait(PATIENCE)
    assert [asked(book, number) for number in range(3)] == [1, 1, 1]
    extended, endangered = said(client)
    assert extended.startswith("console: dap-mux: while ranks are stopped, torch's timeouts")
    assert endangered.startswith("console: dap-mux: ranks 1-2 wait in all_reduce")
    assert "fails in 29 min" in endangered
    client.ask("continue", threadId=book.thread(0))
    book.wait(0.1)
    assert [put_back(book, number) for number in range(3)] == [1, 1, 1]
    assert len(said(client)) == 2


def test_a_short_stop_and_steps_cost_nothing(play: Play) -> None:
    """A stop that ends in time is nobody's business; stepping goes on without a word more."""
    book = torch_job(play)
    client = stopped(book)
    book.wait(PATIENCE - 1)
    client.ask("continue", threadId=book.thread(0))
    book.wait(PATIENCE)
    assert asked(book, 0) == put_back(book, 0) == 0
    all_stopped(book)
    book.wait(PATIENCE)
    assert asked(book, 0) == 1
    for _ in range(3):
        before = len(book.rank(0).data.evaluated)
        client.ask("next", threadId=book.thread(0))
        book.wait(PATIENCE * 2)
        assert len(book.rank(0).data.evaluated) == before
    assert put_back(book, 0) == 0


def test_the_second_pause_tells_no_more_than_is_new(play: Play) -> None:
    """That time-outs are put up is said once; who waits, each time."""
    book = torch_job(play, 2)
    book.rank(1).data.clocks = waiting(100)
    client = attached(book)
    for _ in range(2):
        all_stopped(book, LINE, 0)
        book.wait(PATIENCE)
        client.ask("continue", threadId=book.thread(0))
        book.wait(1)
    assert [text.partition(" ranks")[0][:30] for text in said(client)] == [
        "console: dap-mux: while",
        "console: dap-mux: rank 1 waits",
        "console: dap-mux: rank 1 waits",
    ]


def test_little_time_is_left(play: Play) -> None:
    """Urgent at once where it is; else once more when it becomes so, and only then."""
    book = torch_job(play, 2)
    book.rank(1).data.clocks = waiting(1000)
    client = stopped(book, 0)
    book.wait(PATIENCE)
    assert len(said(client)) == 2
    book.rank(1).data.clocks = waiting(1501)
    book.wait(490)
    assert len(said(client)) == 2
    book.wait(20)
    assert said(client)[2].startswith("important: dap-mux: rank 1 waits")
    assert asked(book, 0) == 2
    book.wait(5000)
    assert len(said(client)) == 3


def test_the_reminder_is_off_once_they_run(play: Play) -> None:
    """Who runs on in time is not reminded."""
    book = torch_job(play, 2)
    book.rank(1).data.clocks = waiting(1000)
    client = stopped(book, 0)
    book.wait(PATIENCE)
    client.ask("continue", threadId=book.thread(0))
    book.wait(5000)
    assert len(said(client)) == 2
    assert asked(book, 1) == 1


def test_a_rank_that_comes_and_one_that_goes(play: Play) -> None:
    """A late rank will wait too; the stopped rank's end puts the others' time-outs back."""
    book = torch_job(play, 2)
    stopped(book, 0)
    book.wait(PATIENCE)
    book.know(2).data.clocks = TORCH
    book.wait(1)
    assert asked(book, 2) == 0, "its link may have come back a moment ago, and break again"
    book.wait(PATIENCE)
    assert [asked(book, rank) for rank in range(3)] == [1, 1, 1]
    book.exited(0, 1)
    book.wait(5)
    assert [put_back(book, number) for number in (1, 2)] == [1, 1]


def test_a_job_without_torch_and_a_rank_that_talks_nonsense(play: Play) -> None:
    """Nothing threatens: nothing is said. A silent rank holds up nobody."""
    book, client = play.stopped(3, settings={"clock_patience": PATIENCE})
    book.wait(PATIENCE * 2)
    assert said(client) == []
    client.ask("continue", threadId=book.thread(0))
    book.wait(1)
    book.rank(1).data.clocks = {"before": "nonsense"}
    book.rank(2).silent = {"evaluate"}
    all_stopped(book)
    book.wait(PATIENCE * 3)
    assert said(client) == [
        "console: dap-mux: torch's timeouts cannot be raised on rank 1: malformed response"
    ]


def test_slurm_ends_the_job(play: Play) -> None:
    """The scheduler's limit is told once, and again when it is near."""
    book = play(2, clock_patience=PATIENCE)
    for rank in book.ranks.values():
        rank.data.clocks = {"job": "77", "left": 7200.0}
    client = stopped(book)
    book.wait(PATIENCE)
    clock = (
        "dap-mux: SLURM's time limit of job 77 keeps running while ranks are paused: "
        "it ends the job in"
    )
    assert said(client) == [f"console: {clock} 2 h"]
    for rank in book.ranks.values():
        rank.data.clocks = {"job": "77", "left": 299.0}
    book.wait(7200)
    assert said(client)[1:] == [f"important: {clock} 4 min"]


def test_nobody_is_asked_where_that_is_off(play: Play) -> None:
    """Patience 0."""
    book = play(2)
    stopped(book)
    book.wait(1000)
    assert asked(book, 0) == 0


@pytest.mark.parametrize("how", ["terminated", "exited", "lost", "released"])
def test_no_rank_is_paused_once_the_stopped_one_is_gone(how: str, rehearse: Play) -> None:
    """A cluster that spares silent ranks while one is stopped watches them again after that."""
    book, client = rehearse.stopped(2, 0)
    assert book.pauses == [True]
    match how:
        case "terminated":
            book.exited(0, 1)
            book.exits(0)
        case "exited":
            book.exited(0, 1)
            book.wait(2)
        case "lost":
            book.absent.add(("job", 0))
            book.lose(0)
        case _:
            client.ask("release", ranks="0")
    book.wait(1)
    assert book.pauses == [True, False]
