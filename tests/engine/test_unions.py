"""Breakpoints of several clients that meet: united where that is exact, else the later refused."""

from __future__ import annotations

from typing import Any

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached
from tests.engine.test_breakpoints import sent, set_one
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

Json = dict[str, Any]


def two(book: Playbook) -> tuple[Client, Client]:
    """Two clients without breakpoints."""
    clients = attached(book, "first"), attached(book, "second")
    with book.quietly("both clear their breakpoints"):
        for client in clients:
            client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[])
    return clients


def last_told(client: Client) -> Json:
    """What the client heard last of a breakpoint by event."""
    told: Json = client.of("breakpoint")[-1]["breakpoint"]
    return told


def test_a_logpoint_meets_a_stop(play: Play) -> None:
    """A logpoint never stops: the later one is refused, and set when the other has gone."""
    book, (first, second) = play.scene(2, two)
    set_one(first)
    told = set_one(second, logMessage="ranks(0): loss {loss}")
    assert not told["verified"]
    assert told["message"].startswith("another client's breakpoint stops on this line")
    assert sent(book) == [[{"line": LINE}]] * 2
    set_one(first)  # sent again, as editors do: it stays the earlier one
    assert sent(book) == [[{"line": LINE}]] * 2
    first.ask("disconnect")
    assert last_told(second)["verified"]
    assert "message" not in last_told(second)
    assert sent(book) == [[{"line": LINE, "logMessage": "loss {loss}"}], []]


def test_a_stop_meets_a_logpoint(play: Play) -> None:
    """The other way round, in one rank of two: it is set in the other rank, and says so."""
    book, (first, second) = play.scene(2, two)
    set_one(first, logMessage="ranks(0): loss {loss}")
    told = set_one(second)
    assert told["verified"]
    assert told["message"].startswith("rank 0: another client's logpoint is on this line")
    assert sent(book) == [[{"line": LINE, "logMessage": "loss {loss}"}], [{"line": LINE}]]


def test_a_condition_that_is_no_python(play: Play) -> None:
    """Alone it is debugpy's to complain; beside another's it must not spoil that one."""
    book, (first, second) = play.scene(1, two)
    assert set_one(first, condition="step ==")["verified"]
    assert set_one(second, condition="step == 3")["verified"]
    assert sent(book) == [[{"line": LINE, "condition": "step == 3"}]]
    assert "is not valid Python" in last_told(first)["message"]
    second.ask("setBreakpoints", source={"path": PATH}, breakpoints=[])
    assert last_told(first)["verified"]


def test_two_that_are_moved_onto_one_line(play: Play) -> None:
    """debugpy would keep the last only: they are sent again, as one."""
    book, (first, second) = play.scene(1, two)
    first.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 14, "condition": "a"}])
    told = second.ask(
        "setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 999, "condition": "b"}]
    )
    assert told.body["breakpoints"][0]["line"] == 14
    assert sent(book) == [[{"line": 14, "condition": "(a) or (b)"}]]


def test_moved_onto_one_line_later(play: Play) -> None:
    """The same when debugpy moves one after it was set, as its code is loaded."""
    book, (first, second) = play.scene(1, two)
    for client, line in ((first, 5), (second, LINE)):
        client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": line}])
    lower = min(book.rank(0)._breakpoints[PATH].values())
    with book.happens():
        moved = {"verified": True, "id": lower, "line": LINE, "source": {"path": PATH}}
        book.rank(0).event("breakpoint", reason="changed", breakpoint=moved)
    assert last_told(first)["line"] == LINE
    assert sent(book) == [[{"line": LINE}]]


def test_function_breakpoints_of_two(play: Play) -> None:
    """One function, two conditions; who leaves takes its own along."""
    book, (first, second) = play.scene(1, two)
    for client, condition in ((first, "a"), (second, "b")):
        wanted = [{"name": "train", "condition": condition}, {"name": f"only_{condition}"}]
        told = client.ask("setFunctionBreakpoints", breakpoints=wanted).body["breakpoints"]
        assert [one["verified"] for one in told] == [True, True]
    first.ask("disconnect")
    told_last = [
        line
        for line in book.transcript.text().splitlines()
        if line.startswith("rank 0 < setFunctionBreakpoints")
    ]
    assert "(a) or (b)" in told_last[-2]
    assert "only_a" not in told_last[-1]
    assert told_last[-1].endswith("breakpoints=[{name: train, condition: b}, {name: only_b}]")


def test_exception_filters_of_two(play: Play) -> None:
    """The union of both, and of those who are left."""
    book, (first, second) = play.scene(1, two)
    first.ask("setExceptionBreakpoints", filters=["raised"])
    second.ask("setExceptionBreakpoints", filters=["uncaught"])
    first.ask("disconnect")
    lines = book.transcript.text().splitlines()
    asked = [line for line in lines if line.startswith("rank 0 < setExceptionBreakpoints")]
    assert [line.rsplit("filters=")[1] for line in asked[-2:]] == [
        "[raised, uncaught]",
        "[uncaught]",
    ]


def test_exception_conditions(play: Play) -> None:
    """debugpy knows none: the filter is not set, and the answer says so."""
    _, client = play.attached(1)
    option = {"filterId": "raised", "condition": "ranks(0): step > 3"}
    body = client.ask("setExceptionBreakpoints", filters=["uncaught"], filterOptions=[option]).body
    assert [one["verified"] for one in body["breakpoints"]] == [True, False]
    assert "does not support conditions for exceptions" in body["breakpoints"][1]["message"]
