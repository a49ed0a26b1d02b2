"""Rank sets by dimensions that only the ranks know, and dimensions that change in mid-session."""

from __future__ import annotations

from dap_mux.pure.rank_sets import Mesh
from tests.engine.conftest import Play
from tests.support.fake_rank.injected_calls import calls_of
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client


def laid_out(book: Playbook, **sizes: int) -> None:
    """The job makes a DeviceMesh of these dimensions, row-major."""
    mesh = Mesh(tuple(sizes.items()))
    for rank in book.ranks.values():
        place = list(mesh.coords(rank.number).values())
        rank.data.meshes = [[list(sizes), list(sizes.values()), place]]


def chosen(client: Client, text: str) -> list[int]:
    return [entry["rank"] for entry in client.ask("list", ranks=text).body["ranks"]]


def questions(book: Playbook) -> int:
    """How often rank 0 was asked for its meshes."""
    return calls_of(book.rank(0).data.evaluated, "torch_state", "meshes")


def test_a_dimension_that_the_ranks_know(play: Play) -> None:
    """An unknown dimension: the ranks are asked for their DeviceMesh, once; rows tell it."""
    book, client = play.attached(4, events=["ranks"])
    laid_out(book, dp=2, tp=2)
    assert chosen(client, "0-1") == [0, 1]
    assert questions(book) == 0
    body = client.ask("list", ranks="ranks(tp=1)").body
    assert [(entry["rank"], entry["coords"]) for entry in body["ranks"]] == [
        (1, {"dp": 0, "tp": 1}),
        (3, {"dp": 1, "tp": 1}),
    ]
    assert chosen(client, "ranks(dp=1)") == [2, 3]
    assert questions(book) == 1
    book.wait(0.1)
    assert [entry["rank"] for entry in client.of("ranks")[-1]["changed"]] == [0, 1, 2, 3]
    names = [row["name"] for row in client.ask("threads").body["threads"]]
    assert names[3] == "rank 3 · dp=1 tp=1"


def test_a_mesh_that_is_renamed_and_reshaped(play: Play) -> None:
    """A renamed and reshaped mesh shows up with the first rank set that speaks of it."""
    book, client = play.attached(4)
    laid_out(book, dp=2, tp=2)
    assert chosen(client, "ranks(tp=0)") == [0, 2]
    laid_out(book, replicate=1, shard=4)
    assert chosen(client, "ranks(shard=3)") == [3]
    assert "did you mean" not in client.ask("list", ranks="ranks(tp=0)").refusal
    assert client.ask("list", ranks="3").body["ranks"][0]["coords"] == {"replicate": 0, "shard": 3}


def test_what_is_given_stays_beside_what_the_ranks_say(play: Play) -> None:
    """`--mesh` and the ranks' own dimensions are known together."""
    book, client = play.attached(4, settings={"meshes": {"job": Mesh.parse("hosts=2,gpus=2")}})
    laid_out(book, gpus=4, ep=1)
    assert chosen(client, "ranks(gpus=1)") == [1, 3]
    assert questions(book) == 0
    assert chosen(client, "ranks(ep=0, hosts=1)") == [2, 3]
    assert chosen(client, "ranks(gpus=1)") == [1, 3]


def test_a_dimension_that_nobody_knows(play: Play) -> None:
    """Asked in vain: the error points at the column and suggests what the ranks know."""
    book, client = play.attached(2)
    refusal = client.ask("list", ranks="ranks(ddp=0)").refusal
    assert refusal.startswith("group job has no mesh dimensions")
    laid_out(book, dp=2)
    refusal = client.ask("list", ranks="0 | ranks(ddp=0)").refusal
    assert refusal.splitlines() == [
        "no dimension 'ddp': did you mean dp?",
        "  0 | ranks(ddp=0)",
        "            ^^^",
    ]


def test_a_rank_that_does_not_tell(play: Play) -> None:
    """A silent rank and one that talks nonsense hold up nobody; two who ask at once ask once."""
    book, client = play.attached(4)
    laid_out(book, dp=2, tp=2)
    book.rank(1).silent = {"evaluate"}
    book.rank(2).data.meshes = [["nonsense"]]
    first = client.send("list", ranks="ranks(tp=1)")
    second = client.ask("list", ranks="ranks(dp=0)")
    book.wait(5)
    assert [entry["rank"] for entry in first.body["ranks"]] == [1, 3]
    assert [entry["rank"] for entry in second.body["ranks"]] == [0, 1]
    assert questions(book) == 1
