"""A hover over a value: this rank's, and beside it those of the ranks in the same function."""

from __future__ import annotations

from typing import Any

from tests.engine.conftest import Play
from tests.engine.scenes import frame_of, values_are
from tests.engine.test_evaluate_words import unfold
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client


def hover(book: Playbook, client: Client, rank: int = 0, text: str = "loss") -> dict[str, Any]:
    """Point at a name in the innermost frame of a rank; a third of a second is left for it."""
    frame = frame_of(client, book.thread(rank))
    answer = client.ask("evaluate", expression=text, context="hover", frameId=frame)
    book.wait(0.31)
    body: dict[str, Any] = answer.body
    return body


def test_the_others_behind_this_ranks_value(play: Play) -> None:
    """Outliers first; it unfolds to this rank, the others, and statistics."""
    book, client = play.stopped(4)
    values_are(book, "loss", "0.5", "0.5", "340268.32927038794", "0.25")
    body = hover(book, client)
    assert body["result"] == "0.5 | ⚠ {2}: 340268… | {1}: 0.5 | {3}: 0.25"
    below = unfold(client, body["variablesReference"])
    assert list(below)[:4] == ["{0}", "⚠ {2}", "{1}", "{3}"]
    assert below["⚠ {2}"] == "340268.32927038794"
    assert hover(book, client, 2)["result"].startswith("⚠ 340268.32927038794 | {0-1}: 0.5")


def test_all_agree(play: Play) -> None:
    """One value, which unfolds as it would with one rank."""
    book, client = play.stopped(3)
    values_are(book, "config", *["{'a': 1}"] * 3)
    body = hover(book, client, 1, "config")
    assert body["result"] == "{'a': 1} (same in {0,2})"
    assert unfold(client, body["variablesReference"]) == {"of": "config"}


def test_ranks_elsewhere_are_not_asked(play: Play) -> None:
    """One that runs, and one in another function: a value of theirs would be of another name."""
    book, client = play.stopped(3, 0, 1)
    values_are(book, "loss", "1", "2", "3")
    before = len(book.rank(2).data.evaluated)
    assert hover(book, client)["result"] == "1 | {1}: 2"
    assert len(book.rank(2).data.evaluated) == before


def test_one_rank_alone_is_answered_as_by_debugpy(play: Play) -> None:
    book, client = play.stopped(2, 0)
    values_are(book, "config", "{'a': 1}", "2")
    body = hover(book, client, 0, "config")
    assert body["result"] == "{'a': 1}"
    assert unfold(client, body["variablesReference"]) == {"of": "config"}


def test_a_rank_that_is_silent_is_named_after_a_moment(play: Play) -> None:
    """With nobody else's answer the value is this rank's alone."""
    book, client = play.stopped(3)
    values_are(book, "loss", "1", "1", "2")
    book.rank(2).silent = {"evaluate"}
    assert hover(book, client)["result"] == "1 | {1}: 1 | no answer: 2"
    book.rank(1).silent = {"evaluate"}
    assert hover(book, client)["result"] == "1"


def test_this_rank_may_take_its_time(play: Play) -> None:
    """Its own value is waited for, as at a hover with debugpy alone."""
    book, client = play.stopped(2)
    values_are(book, "loss", "1", "2")
    book.rank(0).silent = {"evaluate"}
    frame = frame_of(client, book.thread(0))
    answer = client.ask("evaluate", expression="loss", context="hover", frameId=frame)
    book.wait(60)
    assert answer.response is None
    client.vanish()


def test_what_fails_here_is_a_failure(play: Play) -> None:
    """An editor shows nothing then; what fails elsewhere is said."""
    book, client = play.stopped(3)
    values_are(book, "loss", "1", "1", "1")
    del book.rank(1).data.values["loss"]
    frame = frame_of(client, book.thread(1))
    answer = client.ask("evaluate", expression="loss", context="hover", frameId=frame)
    assert "NameError" in answer.refusal
    failed = "{1}: NameError: name 'loss' is not defined"
    assert hover(book, client)["result"] == f"1 | {{2}}: 1 | {failed}"


def test_calls_are_for_this_rank_alone(play: Play) -> None:
    """Only names, attributes and subscripts go to the others; a selected text may be anything."""
    book, client = play.stopped(2)
    values_are(book, "step()", "1", "2")
    before = len(book.rank(1).data.evaluated)
    assert hover(book, client, 0, "step()")["result"] == "1"
    assert len(book.rank(1).data.evaluated) == before


def test_a_frame_that_has_run_on(play: Play) -> None:
    """It has the last value, and nobody is asked."""
    book, client = play.stopped(2)
    values_are(book, "loss", "1", "2")
    frame = frame_of(client, book.thread(0))
    ask = {"expression": "loss", "context": "hover", "frameId": frame}
    assert client.ask("evaluate", **ask).body["result"] == "1 | {1}: 2"
    with book.quietly("rank 0 runs on"):
        client.ask("continue", threadId=book.thread(0), singleThread=True)
    assert client.ask("evaluate", **ask).body["result"] == "1"
