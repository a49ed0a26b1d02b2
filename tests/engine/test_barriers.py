"""Barrier breakpoints: ranks stop all together; differ breakpoints: where their values differ."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dap_mux.pure.rank_sets import Mesh
from tests.conftest import rounds
from tests.engine.conftest import Play
from tests.engine.scenes import (
    LINE,
    SETTLED,
    attached,
    editing,
    introduce,
    states,
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


def reasons(client: Client) -> list[str | None]:
    """The reasons that `list` shows."""
    return [entry["reason"] for entry in client.ask("list").body["ranks"]]


def names(client: Client) -> list[str]:
    return [thread["name"] for thread in client.ask("threads").body["threads"]]


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


# Rounds that may fail


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


def test_removing_the_breakpoint_frees_all(play: Play) -> None:
    book, client = play.scene(3, waiting, 0, 1)
    client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[])
    assert runs(book, 0, 1) == [0, 1]
    assert stops(client) == 0


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


def test_a_rank_that_waits_is_released(play: Play) -> None:
    """It runs on without a debugger, and those who wait do so without it."""
    book, client = play.scene(3, waiting, 0, 1)
    client.ask("release", ranks="0")
    book.wait(1)
    assert runs(book, 0, 1) == [0]
    assert reasons(client)[1:] == ["barrier 1/2", None]
    assert stops(client) == 0


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


@pytest.mark.parametrize("seed", range(rounds(50)))
def test_any_order_is_one_stop(seed: int, rehearse: Play) -> None:
    """Whoever comes when, and is paused, freed alone or lost meanwhile: nobody waits for ever."""
    chance = random.Random(seed)
    book, client = rehearse.scene(8, waiting)
    missing = list(range(8))
    chance.shuffle(missing)
    lost = missing.pop() if seed % 2 else None
    while missing:
        number = missing.pop()
        arrive(book, number)
        if not missing:
            break
        book.wait(chance.choice((0, 0.1, 1)))
        assert stops(client) == 0
        alone = None
        if runs(book, number) == [] and chance.random() < 0.3:
            alone = number
            client.ask("continue", threadId=book.thread(number), singleThread=True)
            assert runs(book, number) == [number]
        if chance.random() < 0.1:
            client.ask("continue", threadId=book.thread(number))
            assert len(runs(book, *range(8))) == 8
        missing = [n for n in runs(book, *range(8)) if n not in (lost, alone)]
        chance.shuffle(missing)
        missing += [] if alone is None else [alone]  # and comes by again
    if lost is not None:
        book.absent.add(("job", lost))
        book.lose(lost)
    book.wait(1)
    others = [number for number in range(8) if number != lost]
    assert (stops(client), runs(book, *others)) == (1, [])
    told = [state for rank, state in enumerate(states(client)) if rank != lost]
    assert told == ["stopped"] * len(others)


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


def test_a_rank_is_lost_while_others_wait(play: Play) -> None:
    """The others are compared without it."""
    book, client = play.scene(3, waiting, condition="differ: step - step")
    for rank in book.ranks.values():
        rank.data.values["step - step"] = "0"
    arrive(book, 0, 2)
    book.absent.add(("job", 1))
    book.lose(1)
    assert (stops(client), runs(book, 0, 2)) == (0, [0, 2])
