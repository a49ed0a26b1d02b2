"""Differ breakpoints in ranks that tell their values and wait in the condition, without a stop."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from tests.conftest import rounds
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, SETTLED, names, reasons, states, told_by_us
from tests.engine.test_barrier_rounds import late
from tests.engine.test_barriers import arrive, runs, stops, waiting, waits
from tests.engine.test_breakpoints import sent
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

DIFFER = "differ: loss"


def hold(book: Playbook, values: Mapping[int, str]) -> None:
    """These ranks come to the line, one after the other, and tell what they have."""
    for number, value in values.items():
        with book.happens():
            book.rank(number).holds(LINE, value)


def held(book: Playbook) -> list[int]:
    return [rank.number for rank in book.ranks.values() if rank.held is not None]


def begun(
    book: Playbook, /, values: Mapping[int, str] | None = None, *, text: str = DIFFER
) -> Client:
    client = waiting(book, condition=text)
    hold(book, values or {})
    return client


def test_the_same_everywhere(play: Play) -> None:
    """No client hears of it, and no rank is asked anything."""
    book, client = play.scene(2, begun)
    assert sent(book) == [[{"line": LINE, "condition": waits(compared='"loss"')}]] * 2
    for _ in range(2):
        hold(book, {1: "2.5"})
        assert held(book) == [1]
        hold(book, {0: "2.5"})
        assert runs(book, 0, 1) == [0, 1]
    assert stops(client) == 0


def test_values_that_differ(play: Play) -> None:
    """All stop, and are told once all have."""
    book, client = play.scene(3, begun, {0: "2.0", 1: "2.5"})
    assert reasons(client) == ["differ 2/3", "differ 2/3", None]
    hold(book, {2: "2.0"})
    assert stops(client) == 1
    told = client.of("stopped")[0]
    assert told["description"] == "At differ 3/3"
    assert told["text"] == "loss, rank 1: 2.5; ranks 0,2: 2.0"
    assert told["threadId"] == book.thread(1), "the outlier, not the first"
    assert told_by_us(client) == ["dap-mux: differ: loss: rank 1: 2.5; ranks 0,2: 2.0\n"]
    assert reasons(client) == ["breakpoint"] * 3


def test_one_that_stops_is_asked(play: Play) -> None:
    """The expression has failed there, or its debugpy cannot be patched."""
    book = play(2)
    book.rank(1).data.values["loss"] = "2.5"
    client = begun(book, {0: "2.5"})
    arrive(book, 1)
    assert runs(book, 0, 1) == [0, 1]
    hold(book, {0: "2.0"})
    arrive(book, 1)
    assert client.of("stopped")[0]["text"].endswith("loss, rank 1: 2.5; rank 0: 2.0")
    assert reasons(client) == ["breakpoint"] * 2


def test_rows_say_who_waits(play: Play) -> None:
    book, client = play.scene(2, begun, {0: "1"})
    book.wait(1)
    assert names(client) == ["rank 0 · differ 1/2", "rank 1"]
    first = client.ask("list").body["ranks"][0]
    told = "state", "reason", "path", "line", "function"
    assert [first[name] for name in told] == ["running", "differ 1/2", PATH, LINE, "train"]
    hold(book, {1: "1"})
    assert names(client) == ["rank 0", "rank 1"]


def test_the_round_is_over_while_one_stops_for_a_pause(play: Play) -> None:
    """It stays there, as it was asked to."""
    book, client = play.scene(2, begun, {0: "1"})
    with book.happens():
        client.send("pause", threadId=book.thread(0), singleThread=True)
        book.rank(1).holds(LINE, "1")
    book.wait(SETTLED)
    assert (runs(book, 0, 1), stops(client)) == ([1], 1)


@pytest.mark.parametrize("single", [True, False])
def test_it_is_told_to_run_on_before_it_has_stopped_for_a_pause(play: Play, single: bool) -> None:
    """It runs on as soon as it has stopped, and is not taken for one that comes by again."""
    book, client = play.scene(2, begun, {0: "1"})
    with book.happens():
        client.send("pause", threadId=book.thread(0), singleThread=True)
        client.send("continue", threadId=book.thread(0), singleThread=single)
        book.rank(1).holds(LINE, "1")
    book.wait(SETTLED)
    assert (runs(book, 0), stops(client)) == ([0], 0)
    assert held(book) == ([] if single else [1])


def test_one_that_was_paused_as_the_round_failed_stays(play: Play) -> None:
    book, client = play.scene(2, late, condition=DIFFER)
    hold(book, {0: "1"})
    book.rank(0).never_stops = True
    client.ask("pause", threadId=book.thread(0), singleThread=True)
    book.wait(1)
    assert stops(client) == 0
    with book.happens():
        book.rank(0).stops_at(LINE)
    book.wait(SETTLED)
    assert (stops(client), runs(book, 0)) == (1, [])


def test_removing_the_breakpoint_frees_all(play: Play) -> None:
    """Also one whose value is still on its way."""
    book, client = play.scene(3, begun, {0: "1"})
    with book.happens():
        book.rank(1).holds(LINE, "1")
        client.send("setBreakpoints", source={"path": PATH}, breakpoints=[])
    assert runs(book, 0, 1) == [0, 1]
    assert stops(client) == 0


def test_loss_and_release(play: Play) -> None:
    """The others are compared without them."""
    book, client = play.scene(4, begun, {0: "1", 1: "2"})
    client.ask("release", ranks="1")
    book.absent.add(("job", 2))
    book.lose(2)
    assert held(book) == [0]
    hold(book, {3: "1"})
    assert (runs(book, 0, 3), stops(client)) == ([0, 3], 0)


def test_one_is_lost_while_all_are_told_to_stop(play: Play) -> None:
    """The others are told as soon as they stand."""
    book, client = play.scene(2, begun, {0: "1"})
    book.absent.add(("job", 1))
    book.rank(1).holds(LINE, "2")
    book.rank(1).never_stops = True
    book.pump()
    assert stops(client) == 0
    book.lose(1)
    assert stops(client) == 1
    assert reasons(client)[0] == "breakpoint"


def test_one_that_never_stops_is_not_waited_for(play: Play) -> None:
    book, client = play.scene(2, begun, {0: "1"})
    book.rank(1).never_stops = True
    hold(book, {1: "2"})
    assert stops(client) == 0
    book.wait(5)
    assert stops(client) == 1
    with book.happens():
        book.rank(1).stops_at(LINE)
    book.wait(SETTLED)
    assert reasons(client) == ["breakpoint"] * 2


def test_another_thread_of_it_stops_elsewhere(play: Play) -> None:
    """The rank has stopped, and waits for nobody."""
    book, client = play.scene(2, begun, {0: "1"})
    with book.happens():
        book.rank(0).stops("breakpoint", 8)
    book.wait(SETTLED)
    assert (held(book), reasons(client)) == ([], ["breakpoint", None])
    hold(book, {1: "2"})
    assert held(book) == []


def test_a_rank_that_talks_nonsense(play: Play) -> None:
    """It runs on, or is not understood; the others wait for it as before."""
    book = play(2)
    begun(book, {0: "1"})
    rank = book.rank(1)
    for told in ({"breakpoint": 99}, {"value": 7}, {"hold": -1}, {"value": "x" * (1 << 18)}):
        with book.happens(), book.quietly(f"rank 1 tells {str(told)[:30]}"):
            rank.event("dapMuxHeld", **{"breakpoint": 1, "hold": 5, "value": "1", **told})
    assert held(book) == [0]


def test_the_session_ends(play: Play) -> None:
    """debugpy frees them when it is left, so nobody is told to run on."""
    book, client = play.scene(2, begun, {0: "1"})
    client.ask("disconnect")
    book.wait(1)
    assert runs(book, 0, 1) == [0, 1]


def stops_together(client: Client) -> int:
    """How often the client was told of a stop of all, and not of a pause."""
    told = (body.get("description", "") for body in client.of("stopped"))
    return sum(description.startswith("At ") for description in told)


@pytest.mark.parametrize("condition", ["barrier", DIFFER])
@pytest.mark.parametrize("seed", range(rounds(50)))
def test_any_order_is_one_stop(seed: int, condition: str, rehearse: Play) -> None:
    """Whoever comes when, and is paused, freed alone or lost meanwhile: nobody waits for ever."""
    chance = random.Random(seed)
    book, client = rehearse.scene(8, waiting, condition=condition)
    odd = chance.randrange(16)  # half of the time there is one that differs
    for number, rank in enumerate(book.ranks.values()):
        rank.data.values["loss"] = "7" if number == odd else "1"
    missing = list(range(8))
    chance.shuffle(missing)
    lost = missing.pop() if seed % 2 else None
    while missing:
        number = missing.pop()
        arrive(book, number)
        if not missing:
            break
        book.wait(chance.choice((0, 0.1, 1)))
        assert stops_together(client) == 0
        alone = number if runs(book, number) == [] and chance.random() < 0.3 else None
        if alone is not None:
            client.ask("continue", threadId=book.thread(number), singleThread=True)
            assert runs(book, number) == [number]
        elif chance.random() < 0.2:
            client.ask("pause", threadId=book.thread(number), singleThread=True)
            book.wait(chance.choice((0, 1)))
            client.ask("continue", threadId=book.thread(number))
        if chance.random() < 0.1:
            client.ask("continue", threadId=book.thread(number))
            assert len(runs(book, *range(8))) == 8
        missing = [n for n in runs(book, *range(8)) if n not in (lost, alone)]
        chance.shuffle(missing)
        missing += [] if alone is None else [alone]  # and comes by again
    if lost is not None:
        book.absent.add(("job", lost))
        book.lose(lost)
    book.wait(6)
    others = [number for number in range(8) if number != lost]
    told = [state for rank, state in enumerate(states(client)) if rank != lost]
    stop = condition == "barrier" or odd in others
    assert held(book) == []
    assert (stops_together(client), runs(book, *others)) == ((1, []) if stop else (0, others))
    assert told == ["stopped" if stop else "running"] * len(others)
