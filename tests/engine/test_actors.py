"""Ranks that tell which actors they are: names and meshes of their own, in one process."""

from __future__ import annotations

from typing import Any

from dap_mux.engine.session.groups import ACTOR, GATHER_S, TAKEN
from tests.engine.conftest import Play
from tests.engine.scenes import LINE
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

DP, TP = 2, 2


def tells(book: Playbook, rank: int, name: str, number: int, **dims: tuple[int, int]) -> None:
    """A rank tells of an actor; `dims`: the size of each dimension, and its place in it."""
    sizes, places = [one[0] for one in dims.values()], [one[1] for one in dims.values()]
    says(book, rank, {"name": name, "rank": number, "mesh": [[*dims], sizes, places]})


def says(book: Playbook, rank: int, data: Any, *, settled: bool = True) -> None:
    with book.happens():
        event = {"category": "telemetry", "output": ACTOR, "data": data}
        book.rank(rank).event("output", **event)
    if settled:
        book.wait(GATHER_S)


def taken(book: Playbook, rank: int) -> int:
    """How often a rank was told that the session has taken note."""
    return book.rank(rank).data.evaluated.count(TAKEN)


def chosen(client: Client, ranks: str) -> list[int]:
    body = client.ask("list", ranks=ranks).body
    return [entry["rank"] for entry in body["ranks"]]


def laid_out(book: Playbook) -> None:
    """Four procs in a mesh, with trainers in all and judges in every second."""
    for rank in range(DP * TP):
        dp, tp = divmod(rank, TP)
        tells(book, rank, "", rank, dp=(DP, dp), tp=(TP, tp))
        tells(book, rank, "trainer", rank, dp=(DP, dp), tp=(TP, tp))
        if tp:
            tells(book, rank, "judge", dp, dp=(DP, dp))


def test_further_names_of_a_rank(play: Play) -> None:
    """Numbers and dimensions behind a name are the actor's own; each telling is confirmed."""
    book, client = play.attached(4)
    laid_out(book)
    assert chosen(client, "ranks(tp=1)") == chosen(client, "judge.ranks()") == [1, 3]
    assert chosen(client, "judge:1 | trainer:0") == [0, 3]
    assert chosen(client, "judge.ranks(dp=0)") == [1]
    assert chosen(client, "all - judge:all") == [0, 2]
    assert chosen(client, "judge:running") == [1, 3]
    assert [taken(book, rank) for rank in range(4)] == [2, 3, 2, 3]
    assert "no rank 2 in group judge: it has 0-1" in client.ask("list", ranks="judge:2").refusal


def test_another_mesh_of_the_same_name(play: Play) -> None:
    """The name stays with the rank that has it, unless that has ended; `-2` is the other."""
    book, client = play.attached(2)
    tells(book, 0, "trainer", 0, at=(1, 0))
    tells(book, 1, "trainer", 0, at=(1, 0))
    tells(book, 1, "job", 0, at=(1, 0))
    assert chosen(client, "trainer:0") == [0]
    assert chosen(client, "trainer-2:0") == chosen(client, "job-2:0") == [1]
    book.exits(0)
    book.wait(60)
    tells(book, 1, "trainer", 0, at=(1, 0), more=(1, 0))
    assert chosen(client, "trainer:0") == [1]


def test_a_condition_that_names_what_is_not_known_yet(play: Play) -> None:
    """It says so, and is set as soon as an actor brings the dimension or the name."""
    book, client = play.attached(4)
    conditions = ("ranks(tp=1): True", "judge.ranks(1): True")
    wanted = [{"line": LINE + at, "condition": text} for at, text in enumerate(conditions)]
    body = client.ask("setBreakpoints", source={"path": PATH}, breakpoints=wanted).body
    assert "has no mesh dimensions" in body["breakpoints"][0]["message"]
    laid_out(book)
    told = {each["breakpoint"]["id"]: each["breakpoint"] for each in client.of("breakpoint")}
    assert [told[each["id"]]["verified"] for each in body["breakpoints"]] == [True, True]
    lines = [[each["line"] for each in book.rank(rank).last_breakpoints] for rank in range(4)]
    assert lines == [[], [LINE], [], [LINE, LINE + 1]]


def test_the_actors_of_a_mesh_are_taken_together(play: Play) -> None:
    """Each of them changes the mesh for all ranks, so they are gathered for a moment."""
    book, client = play.attached(4)
    for rank in range(4):
        mesh = [["dp", "tp"], [DP, TP], [rank // TP, rank % TP]]
        says(book, rank, {"name": "", "rank": rank, "mesh": mesh}, settled=False)
    assert [taken(book, rank) for rank in range(4)] == [0] * 4
    book.wait(GATHER_S)
    assert [taken(book, rank) for rank in range(4)] == [1] * 4
    assert chosen(client, "ranks(tp=1)") == [1, 3]


def test_what_is_malformed_is_dropped(play: Play) -> None:
    book, client = play.attached(2)
    mesh = [["at"], [2], [0]]
    for data in (
        None,
        {"name": "x" * 300, "rank": 0, "mesh": mesh},
        {"name": "x", "rank": -1, "mesh": mesh},
        {"name": "x", "rank": 0, "mesh": [["at"]]},
    ):
        says(book, 0, data)
    says(book, 0, {"name": "x", "rank": 0, "mesh": [["at"], [2, 3], [7]]})
    assert chosen(client, "x:0") == [0]
    assert "has no mesh dimensions" in client.ask("list", ranks="x.ranks(at=0)").refusal


def test_a_stop_tells_its_actor(play: Play) -> None:
    book, client = play.attached(2)
    actor = {"name": "judge", "rank": 1, "mesh": [["dp"], [2], [1]]}
    with book.happens():
        book.rank(1).stops("breakpoint", LINE, actor=actor)
    book.wait(0.2)
    first, second = client.ask("list", ranks="all").body["ranks"]
    assert "actor" not in first
    assert second["actor"] == {"name": "judge", "rank": 1, "coords": {"dp": 1}}
