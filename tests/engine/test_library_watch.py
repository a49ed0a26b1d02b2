"""What torch comes to know in the ranks is told without anybody asking for it."""

from __future__ import annotations

from typing import Final

from dap_mux.engine.job_insight.library_watch import SLOWEST_S
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, all_stopped, attached, names
from tests.engine.test_meshes import laid_out
from tests.support.fake_rank.injected_calls import calls_of
from tests.support.scripted.playbook import PATH, Playbook

PATIENCE: Final = 2.0


def looks(book: Playbook, number: int = 0) -> int:
    """How often a rank was looked at."""
    return calls_of(book.rank(number).data.evaluated, "torch_state", "look")


def test_a_mesh_that_the_job_makes_while_it_runs(play: Play) -> None:
    """Rows tell a rank's place as soon as there is a mesh; it is looked for no more then."""
    book, client = play.attached(4, events=["ranks"], settings={"library_patience": PATIENCE})
    book.wait(PATIENCE)
    assert names(client) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    laid_out(book, dp=2, tp=2)
    book.wait(2 * PATIENCE)
    assert names(client)[3] == "rank 3 · dp=1 tp=1"
    assert client.ask("list", ranks="ranks(tp=1)").body["ranks"][1]["rank"] == 3


def test_the_rank_that_torch_knows_where_it_is_another(play: Play) -> None:
    """A launcher's word counts; torch's own number is a coordinate."""
    book, client = play.attached(2, settings={"library_patience": PATIENCE})
    for rank in book.ranks.values():
        rank.data.meshes = [[["torch_rank"], [2], [rank.number]]]
    book.wait(PATIENCE)
    assert names(client) == ["rank 0", "rank 1"]
    for rank in book.ranks.values():
        rank.data.meshes = [[["torch_rank"], [2], [1 - rank.number]]]
    book.wait(2 * PATIENCE)
    assert names(client) == ["rank 0 · torch_rank=1", "rank 1 · torch_rank=0"]
    assert client.ask("list", ranks="ranks(torch_rank=0)").body["ranks"][0]["rank"] == 1


def test_a_breakpoint_in_compiled_code(play: Play) -> None:
    """It says that it does not stop, and what helps; no more once that code is not compiled."""
    book, client = play.attached(2, settings={"library_patience": PATIENCE})
    book.rank(1).data.compiled = [[PATH, LINE, "attention", "forward"]]
    book.wait(PATIENCE)
    (changed,) = client.of("breakpoint")
    assert changed["breakpoint"]["verified"] is True
    message = changed["breakpoint"]["message"]
    assert message.startswith("torch.compile has compiled attention into forward, and compiled")
    assert "TORCH_COMPILE_DISABLE=1" in message
    (listed,) = client.ask("breakpoints").body["breakpoints"]
    assert listed["message"] == message
    book.rank(1).data.compiled = []
    book.wait(2 * PATIENCE)
    assert "message" not in client.of("breakpoint")[-1]["breakpoint"]


def test_ranks_are_looked_at_ever_more_seldom_and_after_a_stop(play: Play) -> None:
    book, client = play.attached(2, settings={"library_patience": PATIENCE})
    book.wait(PATIENCE * (1 + 2 + 4))
    assert looks(book) == 3
    all_stopped(book, LINE, 0)
    book.wait(PATIENCE)
    assert looks(book) == 4
    assert client.ask("list").body["ranks"][0]["state"] == "stopped"


def test_ranks_without_torch_are_soon_left_alone(play: Play) -> None:
    book = play(2, library_patience=PATIENCE)
    attached(book)
    for rank in book.ranks.values():
        rank.data.torch = False
    book.wait(SLOWEST_S)
    assert looks(book) == 5
    book.wait(10 * SLOWEST_S)
    all_stopped(book, LINE, 0)
    book.wait(PATIENCE)
    assert looks(book) == 5


def test_an_answer_that_makes_no_sense(play: Play) -> None:
    book, client = play.attached(2, settings={"library_patience": PATIENCE})
    book.rank(0).data.compiled = [["nonsense"]]
    book.rank(1).data.meshes = [["nonsense"], 3]
    book.wait(PATIENCE)
    assert client.of("breakpoint") == []
    assert names(client) == ["rank 0", "rank 1"]
