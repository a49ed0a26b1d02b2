"""Variables of a frame, marked where the ranks at its place have other values."""

from __future__ import annotations

import json
from typing import Any

from tests.engine.conftest import Play
from tests.engine.scenes import all_stopped, locals_of, stopped, values_are
from tests.support.fake_rank.injected_calls import calls_of
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client


def rows(book: Playbook, client: Client, rank: int = 0) -> dict[str, dict[str, Any]]:
    """Return the local variables where a rank has stopped, by name."""
    reference = locals_of(client, book.thread(rank))
    body = client.ask("variables", variablesReference=reference).body
    return {row["name"]: row for row in body["variables"]}


def asked(book: Playbook, rank: int) -> int:
    """Return how often a rank was asked for its values."""
    texts = book.rank(rank).data.evaluated
    return sum(calls_of(texts, "local_values", form) for form in ("ask", "bring"))


def test_only_rows_that_differ_are_marked(play: Play) -> None:
    """A bar for each rank, the outliers, and a note for the text of the program."""
    book, client = play.stopped(4, settings={"values_across_ranks": "differing"})
    values_are(book, "loss", "0.5", "0.5", "340268", "0.25")
    values_are(book, "step", "5", "5", "5", "5")
    found = rows(book, client)
    assert found["loss"]["value"] == "0.5  ▁▁█▁ {2}"
    assert found["loss"]["acrossRanks"] == {"line": "▁▁█▁", "ranks": "2", "note": "≠ {2} 340268"}
    assert found["step"] == {"name": "step", "type": "int", "value": "5", "variablesReference": 0}
    there = rows(book, client, 2)
    assert there["loss"]["value"] == "340268  ▁▁█▁ {2}"
    assert there["loss"]["acrossRanks"]["note"] == "≠ {0-1} 0.5 {3} 0.25"


def test_each_client_may_choose(play: Play) -> None:
    """`all` says so of equal values, too; `off` asks nobody."""
    book = play(3, values_across_ranks="differing")
    client = stopped(book, valuesAcrossRanks="all")
    values_are(book, "loss", "1", "1", "1")
    values_are(book, "mode", "'a'", "'b'", "'a'")
    found = rows(book, client)
    assert found["loss"]["value"] == "1  = {0-2}"
    other = book.client("other")
    with book.quietly("another client joins"):
        other.ask("initialize", adapterID="debugpy")
        other.ask("attach", valuesAcrossRanks="off")
        other.ask("configurationDone")
    before = asked(book, 1)
    assert rows(book, other)["loss"]["value"] == "1"
    assert asked(book, 1) == before
    wrong = book.client("wrong")
    wrong.ask("initialize", adapterID="debugpy")
    assert "valuesAcrossRanks" in wrong.ask("attach", valuesAcrossRanks="some").refusal


def test_a_stop_is_one_question(rehearse: Play) -> None:
    """The text of the program and the list of variables ask for the same at once."""
    book, client = rehearse.stopped(3, settings={"values_across_ranks": "differing"})
    values_are(book, "loss", "1", "2", "1")
    reference = locals_of(client, book.thread(0))
    for _ in range(3):
        answer = client.ask("variables", variablesReference=reference)
        assert "█" in json.dumps(answer.body, ensure_ascii=False)
    assert [asked(book, rank) for rank in range(3)] == [1, 1, 1]
    with book.quietly("the next stop"):
        client.ask("continue", threadId=book.thread(0))
        all_stopped(book)
    assert "█" in rows(book, client)["loss"]["value"]
    texts = book.rank(1).data.evaluated
    assert calls_of(texts, "local_values", "bring") == 1, "the code is sent once"
    assert calls_of(texts, "local_values", "ask") == 1


def test_in_many_ranks_fewer_names_are_asked(rehearse: Play) -> None:
    """Their comparison would keep the session busy."""
    book, client = rehearse.stopped(300, settings={"values_across_ranks": "differing"})
    for number in range(20):
        values_are(book, f"v{number:02}", *["1"] * 299, "9")
    marked = [name for name, row in rows(book, client).items() if "acrossRanks" in row]
    assert marked == ["step", "loss", *(f"v{number:02}" for number in range(11))]


def test_nobody_waits_for_a_silent_rank(rehearse: Play) -> None:
    """After 200 ms the answer has what there is; who still owes an answer is not asked again."""
    book, client = rehearse.stopped(3, settings={"values_across_ranks": "differing"})
    values_are(book, "loss", "1", "2", "3")
    book.rank(2).silent = {"evaluate"}
    reference = locals_of(client, book.thread(0))
    answer = client.ask("variables", variablesReference=reference)
    assert answer.response is None
    book.wait(0.21)
    found = {row["name"]: row["value"] for row in answer.body["variables"]}
    assert found["loss"] == "1  ▁█"
    heard = len(book.rank(2).data.evaluated)
    assert rows(book, client, 1)["loss"]["value"] == "2  ▁█"
    body = client.ask("variables", variablesReference=reference).body
    assert "1  ▁█" in str(body), "it is asked for once more, for more may be known by now"
    assert len(book.rank(2).data.evaluated) == heard
    assert asked(book, 0) == 3


def test_ranks_that_run_or_stop_elsewhere_are_not_asked(rehearse: Play) -> None:
    book, client = rehearse.stopped(4, 0, 1, settings={"values_across_ranks": "differing"})
    all_stopped(book, 7, 2)
    values_are(book, "loss", "1", "2", "3", "4")
    assert rows(book, client)["loss"]["value"] == "1  ▁█"
    assert [asked(book, rank) for rank in range(4)] == [1, 1, 0, 0]
    assert rows(book, client, 2)["loss"]["value"] == "3", "it is alone at its place"


def test_a_mark_is_no_part_of_a_value_that_is_set(rehearse: Play) -> None:
    """An editor offers the whole text to be edited."""
    book, client = rehearse.stopped(3, settings={"values_across_ranks": "differing"})
    values_are(book, "loss", "1", "1", "9")
    reference = locals_of(client, book.thread(0))
    for text in ("7  ▁▁█ {2}", "7  ≠ {2} 9", "7  = {0-2}", "7"):
        client.ask("setVariable", variablesReference=reference, name="loss", value=text)
        assert book.rank(0).data.values["loss"] == "7"


def test_an_answer_of_nonsense_is_no_mark(rehearse: Play) -> None:
    """Every byte of a rank is hostile: the variables come as they are."""
    book, client = rehearse.stopped(3, settings={"values_across_ranks": "differing"})
    values_are(book, "loss", "1", "2", "2")
    for rank in range(3):
        book.rank(rank).data._local_values = lambda form, names: '{"loss": [1'  # type: ignore[method-assign]
    assert rows(book, client)["loss"]["value"] == "1"
