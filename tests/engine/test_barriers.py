"""Barrier breakpoints: ranks stop all together; differ breakpoints: where their values differ."""

from __future__ import annotations

from typing import Any

from dap_mux.pure.rank_sets import Mesh
from tests.engine.conftest import Play
from tests.engine.scenes import (
    LINE,
    SETTLED,
    attached,
    editing,
    introduce,
    names,
    reasons,
    stopped,
    told_by_us,
)
from tests.engine.test_breakpoints import sent, set_one
from tests.support.editors import VSCodeModel
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

MESH = {"job": Mesh.parse("dp=2,tp=2")}


def waiting(book: Playbook, /, *ranks: int, **wanted: Any) -> Client:
    """A client with a barrier at the line, set before the ranks run; these are there."""
    client = book.client()
    with book.quietly(f"{len(book.ranks)} ranks attached, a barrier at {PATH}:{LINE}"):
        introduce(client)
        client.ask("attach", justMyCode=True)
        set_one(client, **(wanted or {"condition": "barrier"}))
        client.ask("configurationDone")
    arrive(book, *ranks)
    return client


def arrive(book: Playbook, *ranks: int) -> None:
    for number in ranks:
        book.hits(LINE, number)


def waits(condition: str = "True", compared: str = "null", others: str = "null") -> str:
    """The condition that a rank gets for the first breakpoint."""
    return f"{condition}  # dap-mux waits [1,{compared},{others}]"


def stops(client: Client) -> int:
    return len(client.of("stopped"))


def runs(book: Playbook, *ranks: int) -> list[int]:
    """Which of these ranks run."""
    stand = {n for n in ranks if book.rank(n).data.stopped or book.rank(n).held is not None}
    return [number for number in ranks if number not in stand]


def test_all_stop_together(play: Play) -> None:
    """A rank that is there waits untold; with the last one all have stopped, in one event."""
    book, client = play.scene(3, waiting, 0, 2)
    book.wait(1)
    assert stops(client) == 0
    assert reasons(client) == ["barrier 2/3", None, "barrier 2/3"]
    assert names(client) == ["rank 0 · barrier 2/3", "rank 1", "rank 2 · barrier 2/3"]
    arrive(book, 1)
    assert stops(client) == 1
    assert reasons(client) == ["breakpoint"] * 3
    assert client.of("stopped")[0]["description"] == "At barrier 3/3"


def test_every_round_is_new(play: Play) -> None:
    """After a `continue` of all they wait for each other again."""
    book, client = play.scene(2, waiting, 0, 1)
    client.ask("continue", threadId=1)
    arrive(book, 1)
    assert (stops(client), reasons(client)) == (1, [None, "barrier 1/2"])
    arrive(book, 0)
    assert stops(client) == 2


def test_a_rank_that_is_there_before_it_is_attached(play: Play) -> None:
    """It ran before, and comes to the line while it is being attached: it waits as any other."""
    book = play(2)
    client = book.client()
    introduce(client)
    client.ask("attach", justMyCode=True)
    set_one(client, condition="barrier")
    arrive(book, 0)
    client.ask("configurationDone")
    assert (stops(client), reasons(client)) == (0, ["barrier 1/2", None])
    arrive(book, 1)
    assert (stops(client), reasons(client)) == (1, ["breakpoint"] * 2)


def test_a_set_with_a_condition(play: Play) -> None:
    """The rank set in front says who waits for whom; the condition goes to the ranks."""
    book = play(4, meshes=MESH)
    client = waiting(book, 0, condition="ranks(dp=0) barrier: step == 2")
    assert sent(book) == [[{"line": LINE, "condition": waits("step == 2")}]] * 2 + [[]] * 2
    assert reasons(client) == ["barrier 1/2", None, None, None]
    arrive(book, 1)
    book.wait(SETTLED)
    assert reasons(client) == ["breakpoint"] * 2 + [None] * 2


def test_the_drop_down_of_an_editor(play: Play) -> None:
    """`mode` is the same as the word in the condition, and no rank hears of it."""
    book, client = play.scene(2, waiting, 0, condition="step == 2", mode="together")
    assert sent(book) == [[{"line": LINE, "condition": waits("step == 2")}]] * 2
    assert reasons(client) == ["barrier 1/2", None]
    assert set_one(client, mode="each")["verified"]


def test_the_mode_survives_an_edit_of_the_condition(play: Play) -> None:
    """VS Code sends none then, also with each later list; the answer says so."""
    book, client = play.scene(2, waiting, condition="step == 2", mode="together")
    for condition in ("step == 3", "step == 3", "step == 4"):
        told = set_one(client, condition=condition)
        assert told["message"] == "the mode 'together' is kept; choose 'each rank' to end it"
        assert sent(book) == [[{"line": LINE, "condition": waits(condition)}]] * 2
    arrive(book, 0)
    assert reasons(client) == ["barrier 1/2", None]
    assert "message" not in set_one(client, condition="step == 4", mode="each")
    assert runs(book, 0) == [0]
    assert "message" not in set_one(client, condition="step == 5")
    assert "message" not in set_one(client, condition="step == 5", mode="together")


def test_continue_of_all_frees_all(play: Play) -> None:
    """They may be out of step then, so the next round may fail."""
    book, client = play.scene(3, waiting, 0, 1)
    client.ask("continue", threadId=1)
    assert runs(book, 0, 1) == [0, 1]
    assert reasons(client) == [None] * 3
    arrive(book, 2)
    book.wait(0.9)
    assert reasons(client) == [None, None, "barrier 1/3"]
    book.wait(0.1)
    assert runs(book, 2) == [2]
    arrive(book, 0, 1, 2)
    assert stops(client) == 1


def test_continue_of_ranks_that_are_stopped_elsewhere_frees_none(play: Play) -> None:
    """They may be on their way to the barrier."""
    book, client = play.scene(3, waiting, 0, 1)
    book.rank(2).stops("breakpoint", 8)
    book.wait(1)
    client.ask("continue", threadId=book.thread(2))
    assert runs(book, 0, 1, 2) == [2]
    assert reasons(client) == ["barrier 2/3"] * 2 + [None]


def test_continue_of_a_rank_alone_frees_it(play: Play) -> None:
    """The others wait on, without it, until it comes by again."""
    book, client = play.scene(3, waiting, 0, 1)
    client.ask("continue", threadId=book.thread(0), singleThread=True)
    assert runs(book, 0, 1) == [0]
    assert reasons(client) == [None, "barrier 1/2", None]
    arrive(book, 0)
    assert reasons(client) == ["barrier 2/3", "barrier 2/3", None]


def test_the_last_that_is_awaited_is_freed(play: Play) -> None:
    """Then those that wait are all there."""
    book, client = play.scene(2, waiting, 0)
    with book.quietly("rank 1 waits elsewhere"):
        book.rank(1).stops("pause", 8)
        book.wait(1)
    client.ask("release", ranks="1")
    book.wait(SETTLED)
    assert reasons(client)[0] == "breakpoint"
    told = client.of("stopped")[-1]
    assert (told["description"], told["text"]) == ("At barrier 1/1", "without rank 1")


def test_the_same_breakpoint_sent_again_frees_none(play: Play) -> None:
    """Editors send the whole list each time that one of them changes."""
    book, client = play.scene(2, waiting, 0)
    set_one(client, condition="barrier")
    assert reasons(client) == ["barrier 1/2", None]
    arrive(book, 1)
    assert stops(client) == 1


def test_release_and_loss(play: Play) -> None:
    """Ranks that are let go, lost or ended are waited for no longer."""
    book, client = play.scene(4, waiting, 0, 1)
    client.ask("release", ranks="0")
    assert runs(book, 0, 1) == [0]
    assert reasons(client)[1] == "barrier 1/3"
    book.absent.add(("job", 2))
    book.lose(2)
    assert reasons(client)[1] == "barrier 1/2"
    book.absent.add(("job", 3))
    book.lose(3)
    book.exited(3, 1)
    assert reasons(client)[1] == "breakpoint"
    assert stops(client) == 1


def test_who_comes_back_is_waited_for(play: Play) -> None:
    book, client = play.scene(2, waiting, 0)
    with book.quietly("rank 1 is lost, and comes back"):
        book.know(2)
        book.wait(2)
        book.lose(1)
        book.wait(5)
    assert reasons(client) == ["barrier 1/3", None, None]


def test_an_ordinary_stop_on_the_line_wins(play: Play) -> None:
    """A second client's breakpoint without a condition stops each rank by itself."""
    book, client = play.scene(2, waiting)
    other = attached(book, "other")
    arrive(book, 0)
    book.wait(SETTLED)
    assert reasons(client) == ["breakpoint", None]
    assert stops(other) == 1


def test_a_condition_that_holds_on_the_line_wins(play: Play) -> None:
    """The rank evaluates it before it waits."""
    book, client = play.scene(2, waiting)
    other = attached(book, "other")
    set_one(other, condition="step == 7")
    book.rank(0).data.values["step == 7"] = "False"
    book.rank(1).data.values["step == 7"] = "True"
    arrive(book, 0, 1)
    book.wait(SETTLED)
    assert reasons(client) == ["barrier 1/2", "breakpoint"]


def test_a_pause_shows_who_waits(play: Play) -> None:
    """It is stopped for its clients then, and runs on when it is told to continue."""
    book = play(2)
    book.rank(1).slow = True
    client = waiting(book, 0)
    client.ask("pause", threadId=book.thread(0))
    book.wait(SETTLED)
    assert stops(client) == 1
    client.ask("continue", threadId=book.thread(0))
    assert runs(book, 0) == [0]
    assert reasons(client) == [None, None]


def test_a_step_is_no_barrier(play: Play) -> None:
    """A rank that ends its step on the line has stopped."""
    book, client = play.scene(2, waiting, 0, 1)
    book.rank(0).slow = True
    client.ask("next", threadId=book.thread(0), singleThread=True)
    book.hits(LINE, 0)
    book.wait(SETTLED)
    assert reasons(client) == ["breakpoint", "breakpoint"]


def test_others_on_the_line_that_cannot_be_told_apart(play: Play) -> None:
    book, client = play.scene(1, waiting)
    other = attached(book, "other")
    told = set_one(other, hitCondition="5")
    assert told["message"] == "a barrier and a hit count cannot share a line: not set"
    told = set_one(other, condition="barrier: step == 2")
    assert told["message"] == "another barrier is on this line: not set"
    assert set_one(other, condition="barrier")["verified"]
    told = set_one(client, logMessage="barrier: {loss}")
    assert told["message"] == "a log message never stops a rank, so it has no barrier"


def test_rows_of_an_editor(play: Play) -> None:
    """VS Code reads the names again once a rank has waited for a moment."""
    book, client = play.scene(3, editing, "vscode")
    assert isinstance(client.editor, VSCodeModel)
    with book.quietly("the breakpoint is a barrier"):
        barrier = {"line": LINE, "condition": "barrier"}
        client.send("setBreakpoints", source={"path": PATH}, breakpoints=[barrier])
        book.pump()
    arrive(book, 0)
    book.wait(0.5)
    client.press(client.editor.tick_100ms_after_thread_started())
    book.pump()
    assert client.shows == "0 running, 1 running, 2 running"
    assert client.editor.threads[1][0] == "rank 0 · barrier 1/3"
    arrive(book, 1, 2)
    book.wait(1)
    assert client.shows == "0 stopped <, 1 stopped, 2 stopped"
    assert client.editor.threads[1][0] == "rank 0"


# Differ breakpoints


def test_one_dimension_is_compared(play: Play) -> None:
    """Ranks with the same `tp` are compared, whatever the others have."""
    book = play(4, meshes=MESH)
    for number, rank in enumerate(book.ranks.values()):
        rank.data.values["loss"] = str(number % 2)
    client = waiting(book, 0, 1, 2, 3, condition="differ(dp): loss")
    book.wait(1)
    assert stops(client) == 0
    book.rank(3).data.values["loss"] = "7"
    arrive(book, 3, 2, 1, 0)
    book.wait(1)
    assert client.of("stopped")[0]["text"].endswith("loss, rank 3: 7; rank 1: 1")


def test_the_focus_goes_to_the_outlier(play: Play) -> None:
    """Also from another rank that was looked at before; rank 0 stays where it stands."""
    book, client = play.scene(3, waiting, 0, 1, 2, condition="differ: loss")
    for number, rank in enumerate(book.ranks.values()):
        rank.data.values["loss"] = "2.5" if number == 2 else "2.0"
    client.ask("continue", threadId=book.thread(0))
    arrive(book, 0, 1, 2)
    book.wait(1)
    assert [one["threadId"] for one in client.of("stopped")][-1] == book.thread(2)


def test_a_tolerance_and_a_set(play: Play) -> None:
    book = play(3)
    for number, rank in enumerate(book.ranks.values()):
        rank.data.values["loss"] = f"1.000{number}"
    client = waiting(book, 0, 1, condition="ranks(0,1) differ: loss within 0.1%")
    book.wait(1)
    assert (stops(client), runs(book, 0, 1)) == (0, [0, 1])


def test_an_expression_that_fails_stops(play: Play) -> None:
    """Otherwise a name that is spelled wrong would never be found."""
    book, client = play.scene(2, waiting, 0, 1, condition="los", mode="differ")
    book.wait(1)
    told = client.of("stopped")[0]["text"]
    assert told == "los, ranks 0-1: NameError: name 'los' is not defined"


def test_differ_breakpoints_that_cannot_be(play: Play) -> None:
    book, client = play.scene(2, waiting)
    told = set_one(client, mode="differ")
    assert told["message"] == "write the expression to compare as the condition"
    assert set_one(client, condition="differ: a b")["message"] == "not a Python expression: a b"
    told = set_one(client, condition="differ(dp): loss")
    assert told["message"].startswith("group job has no mesh dimension 'dp'")
    assert sent(book) == [[], []]


def test_a_rank_whose_debugpy_does_not_let_it_wait(play: Play) -> None:
    """It stops by itself, and the others do not wait for it."""
    book = play(2)
    book.rank(1).data.fails.add("comparisons")
    client = stopped(book)
    set_one(client, condition="barrier")
    (told,) = told_by_us(client)
    assert told.startswith("dap-mux: rank 1 stops at barriers by itself: ")
    client.ask("continue", threadId=1)
    arrive(book, 0)
    book.wait(SETTLED)
    assert client.of("stopped")[-1]["description"] == "At barrier 1/1"
    with book.happens():
        book.rank(1).stops_at(LINE)
    book.wait(SETTLED)
    assert reasons(client) == ["breakpoint"] * 2
