"""Rows for threads in user code, where a rank tells which those are."""

from __future__ import annotations

from typing import Any, Final

from dap_mux.engine.session.rank_events import USER_THREADS
from dap_mux.pure.endpoint import Traits
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached
from tests.support.fake_rank.rank import FakeRank
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

TASKS: Final = Traits(user_threads=("Task-*",))
FIRST: Final = {"id": 2, "name": "Task-1"}
SECOND: Final = {"id": 3, "name": "Task-2"}
MAIN: Final = {"id": 1, "name": "MainThread"}


def stops(book: Playbook, rank: FakeRank, thread: int, *threads: dict[str, Any]) -> None:
    """In `thread`; `threads` stand in user code."""
    with book.happens():
        rank.data.threads.update({one["id"]: one["name"] for one in threads})
        rank.stops("breakpoint", LINE, thread=thread, userThreads=list(threads))
    book.wait(0.2)


def rows(client: Client) -> dict[str, int]:
    return {row["name"]: row["id"] for row in client.ask("threads").body["threads"]}


def test_each_thread_in_user_code_is_a_row(play: Play) -> None:
    """The rank's own row stays with the thread that it has shown, as long as that stands there."""
    book = play(2, threads="user")
    client = attached(book)
    rank = book.rank(0)
    assert rows(client) == {"rank 0": 1, "rank 1": 2}
    stops(book, rank, 2, FIRST, SECOND)
    assert rows(client) == {"rank 0 / Task-1": 1, "rank 0 / Task-2": 3, "rank 1": 2}
    client.ask("continue", threadId=1)
    stops(book, rank, 3, FIRST, SECOND)
    assert rows(client) == {"rank 0 / Task-1": 1, "rank 0 / Task-2": 3, "rank 1": 2}
    assert client.of("stopped")[-1]["threadId"] == 3
    client.ask("continue", threadId=3)
    stops(book, rank, 3, SECOND)
    assert rows(client) == {"rank 0": 1, "rank 1": 2}
    assert client.of("thread")[-1] == {"reason": "exited", "threadId": 3}


def test_a_source_names_its_task_threads(play: Play) -> None:
    book = play(0)
    ranks = [book.know(number, traits=TASKS) for number in range(2)]
    client = attached(book)
    stops(book, ranks[0], 3, MAIN, SECOND)
    assert rows(client) == {"rank 0": 1, "rank 1": 2}


def test_threads_that_come_later(play: Play) -> None:
    """What is malformed is dropped, and no thread is told twice."""
    book = play(2, threads="user")
    client = attached(book)
    rank = book.rank(0)
    stops(book, rank, 2, FIRST)
    for threads in ("none", [{"id": "x"}], [SECOND], [SECOND, FIRST]):
        with book.happens():
            data = {"threads": threads}
            rank.event("output", category="telemetry", output=USER_THREADS, data=data)
        book.wait(0.2)
    assert rows(client) == {"rank 0 / Task-1": 1, "rank 0 / Task-2": 3, "rank 1": 2}
    late = [body for body in client.of("stopped") if body.get("preserveFocusHint")]
    assert len(late) == 1


def test_a_rank_that_tells_nothing_has_one_row(play: Play) -> None:
    book = play(2, threads="user")
    client = attached(book)
    with book.happens():
        book.rank(0).data.threads[2] = "Task-1"
        book.rank(0).stops("breakpoint", LINE, thread=2)
    book.wait(0.2)
    assert rows(client) == {"rank 0": 1, "rank 1": 2}
    assert client.ask("stackTrace", threadId=1).body["stackFrames"][0]["line"] == LINE


def test_the_user_may_want_one_row_for_each_rank(play: Play) -> None:
    """Whatever its source says of its threads."""
    book = play(0, threads="main")
    ranks = [book.know(number, traits=TASKS) for number in range(2)]
    client = attached(book)
    for rank in ranks:
        stops(book, rank, 2, FIRST, SECOND)
    assert rows(client) == {"rank 0": 1, "rank 1": 2}


def test_a_row_steps_its_own_thread_and_continue_ends_all(play: Play) -> None:
    """The rank's own row as any other."""
    book = play(2, threads="user")
    client = attached(book)
    for rank in book.ranks.values():
        stops(book, rank, 2, FIRST, SECOND)
    stepping, other = book.rank(0), book.rank(1)
    stepping.slow = True  # its threads stop where the test says
    for row, thread in ((1, 2), (3, 3)):
        client.ask("next", threadId=row, singleThread=True)
        stepped = book.transcript.text().rpartition("rank 0 < next ")[2]
        assert stepped.splitlines()[0] == f"threadId={thread}"
        with book.happens():
            stepping.stops("step", LINE + 1, thread=thread, userThreads=[FIRST, SECOND])
        book.wait(0.2)
        assert client.of("stopped")[-1]["threadId"] == row
        assert other.program.line == LINE
    client.ask("continue", threadId=1)
    book.wait(1)
    assert not any(rank.data.stopped for rank in book.ranks.values())
