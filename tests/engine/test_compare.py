"""`compare`: what many ranks say of one expression."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, all_stopped, attached, values_are

EDGES = [2 + step / 5 for step in range(11)]


def value(ranks: str, text: str, *, outlier: bool = False) -> dict[str, object]:
    """An entry of `values`."""
    return {"ranks": ranks, "value": text, "outlier": outlier}


def test_numbers(play: Play) -> None:
    """Groups with most ranks first, statistics, and outliers at the end."""
    book, client = play.stopped(6)
    values_are(book, "norm", "2.0", "2.0", "nan", "2.0", "4.0", "2.0")
    body = client.ask("compare", expression="norm").body
    assert body == {
        "values": [
            value("0-1,3,5", "2.0"),
            value("2", "nan", outlier=True),
            value("4", "4.0", outlier=True),
        ],
        "statistics": {
            "min": 2.0,
            "max": 4.0,
            "mean": pytest.approx(2.4),
            "std": pytest.approx(0.8),
            "nan": 1,
            "inf": 0,
            "histogram": None,
        },
        "outliers": "2,4",
        "errors": [],
        "missing": "",
    }


def test_a_histogram_is_for_eight_numbers(play: Play) -> None:
    """Ten bins, the last one closed on both sides; of fewer numbers there is none."""
    book, client = play.stopped(8)
    values_are(book, "norm", *["2.0"] * 7, "4.0")
    statistics = client.ask("compare", expression="norm").body["statistics"]
    assert statistics["histogram"] == {"edges": pytest.approx(EDGES), "counts": [7, *[0] * 8, 1]}
    fewer = client.ask("compare", expression="norm", ranks="1-7").body["statistics"]
    assert fewer["histogram"] is None


def test_a_tolerance(play: Play) -> None:
    """Within a tolerance, relative as a bare number, values are the same and nobody an outlier."""
    book, client = play.stopped(3)
    values_are(book, "loss", "100", "100", "101")
    assert client.ask("compare", expression="loss").body["outliers"] == "2"
    for tolerance in (0.02, {"absolute": 1}):
        body = client.ask("compare", expression="loss", tolerance=tolerance).body
        assert (body["values"], body["outliers"]) == ([value("0-2", "100")], "")
    refusal = client.ask("compare", expression="loss", tolerance=-1).refusal
    assert refusal == "compare: tolerance must be at least 0.0"


def test_no_numbers(play: Play) -> None:
    """Other values are grouped too; there are no statistics of them."""
    book, client = play.stopped(4)
    values_are(book, "mode", "'a'", "'a'", "'a'", "'b'")
    body = client.ask("compare", expression="mode", ranks="1-3").body
    assert body["statistics"] is None
    assert body["values"] == [value("1-2", "'a'"), value("3", "'b'", outlier=True)]
    assert body["outliers"] == "3"


def test_who_fails_and_who_is_silent(play: Play) -> None:
    """Errors and who is missing are named; a running rank speaks of `__main__`."""
    book, client = play.stopped(5, 0, 1, 2, 3)
    values_are(book, "loss", "1", "1", "1", "1", "7")
    del book.rank(1).data.values["loss"]
    book.rank(3).silent = {"evaluate"}
    answer = client.ask("compare", expression="loss", timeout=2)
    book.wait(2)
    assert answer.body["values"] == [value("0,2", "1"), value("4", "7", outlier=True)]
    ((error),) = answer.body["errors"]
    assert error["ranks"] == "1"
    assert "NameError" in error["message"]
    assert answer.body["missing"] == "3"
    assert "no rank 9" in client.ask("compare", expression="loss", ranks="9").refusal


def test_a_frame_further_up(play: Play) -> None:
    """`frame` counts from the innermost; a rank whose stack ends before says so."""
    _, client = play.stopped(2)
    assert client.ask("compare", expression="loss", frame=1).body["errors"] == []
    (error,) = client.ask("compare", expression="loss", frame=2).body["errors"]
    assert error == {"ranks": "0-1", "message": "it has no frame 2: its stack is 2 deep"}


def test_two_groups_with_the_same_ranks(play: Play) -> None:
    """Where two groups have a rank 0 every set that comes back names its group."""
    book = play()
    for group, number in [("trainer", 0), ("trainer", 1), ("eval", 0)]:
        book.know(number, group)
    client = attached(book)
    with book.quietly("all stop"):
        book.hits(LINE)
        book.wait(0.1)
    values_are(book, "mode", "'a'", "'a'", "'b'")
    body = client.ask("compare", expression="mode").body
    assert [one["ranks"] for one in body["values"]] == ["trainer:0-1", "eval:0"]
    assert body["outliers"] == "eval:0"
    watch = {"expression": "eval.ranks() mode", "context": "watch"}
    assert client.ask("evaluate", **watch).body["result"] == "'b'"
    assert "which group?" in client.ask("compare", expression="mode", ranks="0").refusal


def test_objects_of_one_kind(play: Play) -> None:
    """The default `repr` of an object has an address, which is no difference between ranks."""
    book, client = play.stopped(3)
    values_are(book, "model", *(f"<train.Model object at 0x7f{rank}0>" for rank in range(3)))
    masked = "<train.Model object at 0x…>"
    body = client.ask("compare", expression="model").body
    assert (body["values"], body["outliers"]) == ([value("0-2", masked)], "")
    watch = {"expression": "ranks(0:3) model", "context": "watch"}
    assert client.ask("evaluate", **watch).body["result"] == f"{{0-2}}: {masked}"
    (result,) = client.ask("cast", ranks="all", command="p model").body["results"]
    assert (result["ranks"], result["value"]) == ("0-2", masked)


def test_values_at_the_last_stops(play: Play) -> None:
    """The session keeps them for each expression, so a client that comes anew gets them, too."""
    book, client = play.stopped(3)
    losses = (("1", "1", "1"), ("2", "2", "9"), ("3", "3", "3"))
    for number, values in enumerate(losses, 1):
        values_are(book, "loss", *values)
        for _ in range(2):
            body = client.ask("compare", expression="loss", history=True).body
            assert len(body["history"]) == number, "once for each stop"
        with book.quietly("the next stop"):
            client.ask("continue", threadId=book.thread(0))
            all_stopped(book)
    assert "history" not in client.ask("compare", expression="loss").body
    other = attached(book, "other")
    body = other.ask("compare", expression="loss", history=True).body
    told = [(one["value"], one["outliers"]) for one in body["history"]]
    assert told == [("1", ""), ("2", "2"), ("3", ""), ("3", "")]
    assert len(other.ask("compare", expression="step", history=True).body["history"]) == 1


def test_fifty_stops_are_kept(rehearse: Play) -> None:
    book, client = rehearse.stopped(2)
    body: dict[str, Any] = {}
    for number in range(60):
        values_are(book, "loss", str(number), str(number))
        body = client.ask("compare", expression="loss", history=True).body
        client.ask("continue", threadId=book.thread(0))
        all_stopped(book)
    assert [one["value"] for one in body["history"]] == [str(number) for number in range(10, 60)]
