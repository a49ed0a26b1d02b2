"""A part of the ranks is let run, and waits for those that stand: users are told."""

from __future__ import annotations

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, reasons, stopped
from tests.engine.test_why import RECEIVES, STILL, asleep
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

WAITS = "dap-mux: rank 0 waits in all_reduce for rank 1, which stands at train.py:6; "
TOLD = WAITS + "`cast 1 n` lets both on\n"


def standing(book: Playbook) -> Client:
    """All stand at the line; a rank that is told to move stays in its collective from then on."""
    client = stopped(book)
    for rank in book.ranks.values():
        rank.slow = True
        rank.data.evidence = RECEIVES
    client.ask("view", value="ranks")
    book.wait(1)
    return client


def step(book: Playbook, client: Client, *ranks: int, command: str = "next") -> None:
    for number in ranks:
        client.ask(command, threadId=book.thread(number), singleThread=True)


def told(client: Client) -> list[str]:
    return [body["output"] for body in client.of("output") if "stand" in body["output"]]


def stays(book: Playbook, *ranks: int) -> None:
    """These stand at the line, and not in the collective."""
    for number in ranks:
        book.rank(number).data.evidence = asleep((0, 0, LINE), call={"text": ""})


def test_a_step_that_waits_for_a_held_rank_says_so_once(play: Play) -> None:
    """After 2 s it is told, once, and the row says it until the other goes on."""
    book, client = play.scene(2, standing)
    stays(book, 1)
    step(book, client, 0)
    book.wait(1.9)
    assert told(client) == []
    book.wait(0.5)
    assert told(client) == [TOLD]
    assert reasons(client) == ["waits in all_reduce for rank 1", "breakpoint"]
    book.wait(100)
    assert told(client) == [TOLD]
    step(book, client, 1)
    assert reasons(client) == [None, None]


def test_a_step_that_ends_in_time_says_nothing(play: Play) -> None:
    book, client = play.scene(2, standing)
    step(book, client, 0)
    book.wait(1.9)
    book.rank(0).arrives()
    book.wait(100)
    assert told(client) == []


def test_a_step_that_ends_while_it_is_looked_at_says_nothing(play: Play) -> None:
    book, client = play.scene(2, standing)
    stays(book, 1)
    step(book, client, 0)
    book.wait(2.1)
    book.rank(0).arrives()
    book.wait(100)
    assert told(client) == []


def test_a_continue_that_comes_to_a_collective_later_says_so_then(play: Play) -> None:
    book, client = play.scene(2, standing)
    stays(book, 0, 1)
    step(book, client, 0, command="continue")
    book.wait(5)
    assert told(client) == []
    book.rank(0).data.evidence = RECEIVES
    book.wait(10)
    assert told(client) == [TOLD]


def test_several_wait_for_several(play: Play) -> None:
    """Those that one command has let run are told together."""
    book, client = play.scene(4, standing)
    stays(book, 1, 2)
    client.ask("cast", ranks="0,3", command="n")
    book.wait(3)
    (text,) = told(client)
    assert text == (
        "dap-mux: ranks 0,3 wait in all_reduce for ranks 1-2, which stand at train.py:6; "
        "`cast 1-2 n` lets all on\n"
    )


def test_who_may_wait_for_a_rank_that_runs_is_not_told_of(play: Play) -> None:
    book, client = play.scene(3, standing)
    stays(book, 1, 2)
    step(book, client, 0, 2, command="continue")
    book.wait(3)
    assert told(client) == []


def test_who_has_made_the_call_is_not_waited_for(play: Play) -> None:
    """torch's record says that rank 1 has been in the collective that rank 0 waits in."""
    book, client = play.scene(3, standing)
    recorded = {"group": "dp", "number": 7, "kind": "all_reduce", "age": 5.0, "state": "started"}
    torch = {"files": [["torch/distributed/distributed_c10d.py", True]]}
    for number, state in enumerate(("started", "completed", "none")):
        one = {**recorded, "state": state, "number": 6 if number == 2 else 7}
        frames = [(0, 1, 9)] if number == 0 else [(0, 0, LINE)]
        thread = {"name": "MainThread", "main": True, "frames": frames, "state": "S"}
        book.rank(number).data.evidence = {
            **STILL, **torch, "threads": [thread], "collectives": [one],
        }  # fmt: skip
    step(book, client, 0)
    book.wait(3)
    assert "for rank 2, which stands" in told(client)[0]
    assert "in all_reduce #7 of group dp" in told(client)[0]


def test_a_rank_that_is_lost_is_named_no_more(play: Play) -> None:
    book, client = play.scene(2, standing)
    stays(book, 1)
    step(book, client, 0)
    book.wait(3)
    book.absent.add(("job", 1))
    book.lose(1)
    assert reasons(client)[0] is None
