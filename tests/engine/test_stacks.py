"""Stacks: those of many ranks as one tree, and the one that a stop tells."""

from __future__ import annotations

from typing import Any

from dap_mux.pure.endpoint import Traits
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, stopped
from tests.support.scripted.playbook import PATH

MAIN = "MainThread"
ANSWER: dict[str, Any] = {
    "files": [["/job/train.py", False], ["/usr/lib/python3/threading.py", True]],
    "functions": ["main", "wait"],
    "threads": [["MainThread", True, [[0, 0, 7]]], ["loader-4", False, [[1, 1, 9]]]],
}


def test_ranks_at_different_places_part_where_they_differ(play: Play) -> None:
    book, client = play.stopped(4)
    [*book.ranks.values()][1].data.stacks = ANSWER
    body = client.ask("stacks").body
    (thread,) = (one for one in body["threads"] if one["name"] == MAIN)
    assert [branch["ranks"] for branch in thread["branches"]] == ["0,2-3", "1"]
    first, other = thread["branches"]
    assert [frame["name"] for frame in first["frames"]] == ["<module>", "train"]
    assert first["frames"][-1]["line"] == LINE
    assert (first["ends"], first["stopped"]) == ("0,2-3", "0,2-3")
    assert other["frames"] == [
        {"path": "/job/train.py", "line": 7, "name": "main", "library": False}
    ]
    assert body["missing"] == []


def test_threads_of_one_kind_are_one_tree(play: Play) -> None:
    book, client = play.attached(3)
    for number, rank in enumerate(book.ranks.values()):
        threads = [ANSWER["threads"][0], [f"loader-{number}", False, [[1, 1, 9]]]]
        rank.data.stacks = {**ANSWER, "threads": threads}
    body = client.ask("stacks", threads="all", ranks="0-1").body
    assert [(one["name"], one["ranks"]) for one in body["threads"]] == [
        (MAIN, "0-1"),
        ("loader-#", "0-1"),
    ]
    (branch,) = body["threads"][1]["branches"]
    assert (branch["ranks"], branch["stopped"]) == ("0-1", "")


def test_ranks_that_cannot_tell_are_named_with_the_reason(play: Play) -> None:
    book, client = play.attached(3)
    first, second, _ = book.ranks.values()
    first.data.stacks = {**ANSWER, "threads": [["MainThread", True, [[5, 0, 7]]]]}
    second.data.stacks = "nonsense"
    body = client.ask("stacks").body
    assert [one["ranks"] for one in body["missing"]] == ["0-1"]
    assert [one["ranks"] for one in body["threads"]] == ["2"]
    refusal = client.ask("stacks", threads="some").refusal
    assert "threads" in refusal


ON_A_THREAD: dict[str, Any] = {
    **ANSWER,
    "threads": [
        ["MainThread", True, [[1, 1, 468]]],
        ["Task-Threads-1", False, [[0, 0, 22]]],
        ["Task-Threads-1, asyncio tasks", False, [[0, 0, 23]]],
        ["loader-4", False, [[0, 0, 9]]],
    ],
}


def test_the_stopped_thread_counts(play: Play) -> None:
    """A worker's main thread serves its framework; the user's code runs on another one."""
    book = play(1)
    rank = book.know(1, traits=Traits(user_threads=("Task-*",)))
    client = attached(book)
    rank.data.stacks = ON_A_THREAD
    threads = [{"id": 2, "name": "Task-Threads-1"}, {"id": 3, "name": "Task-Threads-2"}]
    with book.happens():
        rank.stops("breakpoint", LINE, thread=2, userThreads=threads)
    book.wait(1)
    body = client.ask("stacks", ranks="1").body
    names = [one["name"] for one in body["threads"]]
    assert names == ["Task-Threads-#", "Task-Threads-#, asyncio tasks"]
    assert body["threads"][0]["branches"][0]["frames"][0]["line"] == 22


def test_user_threads_of_a_running_rank(play: Play) -> None:
    """Those that its source names; a rank of which none is in user code shows its main one."""
    book = play()
    traits = Traits(user_threads=("Task-*",))
    for number in range(2):
        book.know(number, traits=traits).data.stacks = ON_A_THREAD
    idle = [["MainThread", True, [[1, 1, 468]]], ["Task-1", False, [[1, 1, 9]]]]
    book.rank(1).data.stacks = {**ANSWER, "threads": idle}
    client = attached(book)
    body = client.ask("stacks").body
    assert {one["name"]: one["ranks"] for one in body["threads"]} == {
        "MainThread": "1",
        "Task-Threads-#": "0",
        "Task-Threads-#, asyncio tasks": "0",
    }


def test_a_stop_that_tells_its_stack(play: Play) -> None:
    """Nobody is asked for it: a step is one request to each rank, and one stop for the client."""
    book = play(2)
    for rank in book.ranks.values():
        rank.patchable = True
    client = stopped(book)
    client.ask("next", threadId=book.thread(0))
    assert len(client.of("stopped")) == 2
    entries = client.ask("list").body["ranks"]
    assert [entry["line"] for entry in entries] == [LINE + 1, LINE + 1]
    (told,) = client.ask("cast", ranks="all", command="n").body["results"]
    assert told["value"] == f"> {PATH}({LINE + 2})train()\n-> code: line {LINE + 2}"


def test_a_first_stop_that_tells_its_thread(play: Play) -> None:
    """Nobody is asked for the main thread's name; where another stops, the names tell which."""
    book = play(2)
    for rank in book.ranks.values():
        rank.patchable = True
    client = attached(book)
    book.rank(0).hits(LINE)
    book.rank(1).data.threads[7] = "loader"
    book.rank(1).stops("breakpoint", LINE, thread=7)
    book.pump()
    entries = client.ask("list").body["ranks"]
    assert [entry["thread"] for entry in entries] == ["MainThread", "loader"]
    asked = [line for line in book.transcript.text().splitlines() if " < threads" in line]
    assert asked == ["rank 1 < threads"]


def test_a_stack_that_comes_late(play: Play) -> None:
    """Its answer is behind much output: the stop is told without, and `list` has it in the end."""
    book, client = play.attached(2)
    book.rank(0).silent = {"stackTrace"}
    book.rank(0).hits(LINE)
    book.wait_quietly(1.2, "a second passes")
    assert len(client.of("stopped")) == 1
    (entry,) = client.ask("list", ranks="0").body["ranks"]
    assert (entry["state"], entry["line"]) == ("stopped", None)
    book.answers(0)
    (entry,) = client.ask("list", ranks="0").body["ranks"]
    assert (entry["state"], entry["line"]) == ("stopped", LINE)


def test_a_stack_that_is_asked_for_before_the_stop(play: Play) -> None:
    """nvim-dap asks as soon as `pause` is answered; the rank, having stopped, is asked again."""
    book, client = play.attached(2, kind="neovim")
    rank = book.rank(1)
    rank.slow, rank.silent = True, {"stackTrace"}
    client.ask("pause", threadId=book.thread(1), singleThread=True)
    waiting = client.ask("stackTrace", threadId=book.thread(1))
    book.arrives(1)
    book.answers(1)
    assert [frame["line"] for frame in waiting.body["stackFrames"]] == [12]
