"""Requests that come too early, name what is not there, or outlive what they ask about."""

from __future__ import annotations

import re

from tests.engine.conftest import Play
from tests.engine.scenes import attached, frame_of, locals_of, states


def test_before_attach(play: Play) -> None:
    """A client that has not attached may introduce itself and set breakpoints, no more."""
    _, client = play.introduced(1)
    assert "send `attach` first" in client.ask("continue", threadId=1).refusal
    assert client.ask("threads").body == {"threads": []}


def test_bogus_handles(play: Play) -> None:
    """Ids that were never given out, or of another kind, are errors at once."""
    book, client = play.stopped(2)
    frame = frame_of(client, book.thread(1))
    assert "no thread 99" in client.ask("stackTrace", threadId=99).refusal
    assert "unknown" in client.ask("scopes", frameId=9999).refusal
    assert "not a" in client.ask("variables", variablesReference=frame).refusal
    for command, arguments in (
        ("continue", {"threadId": 0}),
        ("variables", {"variablesReference": 4711}),
        ("setVariable", {"variablesReference": 1, "name": "a", "value": "1"}),
        ("goto", {"threadId": book.thread(0), "targetId": 5}),
    ):
        refusal = client.ask(command, **arguments).refusal
        assert re.search("unknown|no thread|not a", refusal), refusal
    assert states(client) == ["stopped"] * 2


def test_stale_handles(play: Play) -> None:
    """After its rank has run on, a frame is an error to whoever types or sets something there."""
    book, client = play.stopped(2)
    frame = frame_of(client, book.thread(1))
    scope = client.ask("scopes", frameId=frame).body["scopes"][0]["variablesReference"]
    client.ask("next", threadId=book.thread(1))
    book.wait(0.1)
    for command, arguments in (
        ("evaluate", {"frameId": frame, "expression": "loss"}),
        ("evaluate", {"frameId": frame, "expression": "loss", "context": "repl"}),
        ("evaluate", {"frameId": frame, "expression": "loss", "context": "clipboard"}),
        ("setVariable", {"variablesReference": scope, "name": "loss", "value": "1"}),
        ("setExpression", {"frameId": frame, "expression": "loss", "value": "1"}),
    ):
        assert "has run on since" in client.ask(command, **arguments).refusal
    assert frame_of(client, book.thread(1)) != frame


def test_what_is_shown_of_a_frame_stays_until_there_is_a_new_one(play: Play) -> None:
    """F10 is held: an editor asks for what it shows of a stop that is over, and shows it on."""
    book, client = play.stopped(2)
    frame = frame_of(client, book.thread(1))
    scopes = client.ask("scopes", frameId=frame).body
    scope = scopes["scopes"][0]["variablesReference"]
    children = client.ask("variables", variablesReference=scope).body
    watch = {"expression": "loss", "context": "watch"}
    value = client.ask("evaluate", frameId=frame, **watch).body
    client.ask("next", threadId=book.thread(1))
    for _ in ("while it steps", "at its next stop"):
        assert client.ask("scopes", frameId=frame).body == scopes
        assert client.ask("variables", variablesReference=scope).body == children
        assert client.ask("evaluate", frameId=frame, **watch).body == value
        other = {"expression": "step", "context": "hover"}
        shown = client.ask("evaluate", frameId=frame, **other).body
        assert shown == {"result": "", "variablesReference": 0}
        book.wait(0.1)


def test_what_was_shown_is_found_under_the_next_stops_references(play: Play) -> None:
    """The scopes of this stop, asked for too late: those of the last, and what is below them."""
    book, client = play.stopped(1)
    scope = locals_of(client, book.thread(0))
    children = client.ask("variables", variablesReference=scope).body
    client.ask("next", threadId=book.thread(0))
    book.wait(0.1)
    scope = locals_of(client, book.thread(0))
    client.ask("next", threadId=book.thread(0))
    assert client.ask("variables", variablesReference=scope).body == children


def test_a_process_that_is_gone_is_not_shown_on(play: Play) -> None:
    """Nor a connection: what was shown may be of another life of the rank."""
    book, client = play.stopped(2)
    frame = frame_of(client, book.thread(1))
    assert client.ask("scopes", frameId=frame).body["scopes"]
    client.ask("next", threadId=book.thread(1))
    book.lose(1)
    assert "rank 1" in client.ask("scopes", frameId=frame).refusal
    book.wait(1)
    assert "rank 1" in client.ask("scopes", frameId=frame).refusal


def test_scopes_that_are_overtaken_by_a_step(play: Play) -> None:
    """They were asked for in time, and answered too late."""
    book, client = play.stopped(2)
    frame = frame_of(client, book.thread(1))
    scopes = client.ask("scopes", frameId=frame).body
    book.rank(1).silent = {"scopes"}
    waiting = client.ask("scopes", frameId=frame)
    client.ask("next", threadId=book.thread(1))
    book.answers(1)
    assert waiting.body == scopes


def test_a_step_of_a_rank_that_steps_is_dropped_for_an_editor(play: Play) -> None:
    """A key that is held: no error at each repetition. Our console is told."""
    book, client = play.stopped(2)
    console = attached(book, "console", kind="dap-mux console")
    book.rank(1).slow = True
    client.ask("next", threadId=book.thread(1))
    assert client.ask("next", threadId=book.thread(1)).body == {}
    assert "is running" in console.ask("next", threadId=book.thread(1)).refusal
    book.arrives(1)
    book.wait(0.1)
    client.ask("continue", threadId=book.thread(1))
    assert "is running" in client.ask("next", threadId=book.thread(1)).refusal


def test_answer_of_a_stop_that_is_over(play: Play) -> None:
    """A stack that arrives after its rank has run on becomes an error."""
    book, client = play.stopped(2)
    book.rank(1).silent = {"stackTrace"}
    waiting = client.ask("stackTrace", threadId=book.thread(1))
    client.ask("continue", threadId=book.thread(1), singleThread=True)
    book.answers(1)
    assert "has run on meanwhile" in waiting.refusal


def test_deadline_names_the_rank(play: Play) -> None:
    """A silent rank: an error that names it after 5 s; its late answer is dropped."""
    book, client = play.stopped(2)
    book.rank(1).silent = {"stackTrace"}
    waiting = client.ask("stackTrace", threadId=book.thread(1))
    assert client.ask("stackTrace", threadId=book.thread(0)).body
    book.wait(5)
    assert waiting.refusal == "rank 1: no answer within 5 s"
    book.answers(1)


def test_link_ends_under_a_request(play: Play) -> None:
    """The connection is lost: who waits is told, the others never notice."""
    book, client = play.stopped(2)
    book.rank(1).silent = {"evaluate"}
    frame = frame_of(client, book.thread(1))
    waiting = client.ask("evaluate", frameId=frame, expression="loss")
    book.lose(1)
    assert "rank 1" in waiting.refusal
    assert client.ask("stackTrace", threadId=book.thread(0)).body
    book.rank(1).silent = set()
    book.wait(1)
    assert [body["reason"] for body in client.of("thread")[-2:]] == ["exited", "started"]


def test_evaluate_has_no_deadline(play: Play) -> None:
    """A user's evaluate may take as long as it takes."""
    book, client = play.stopped(2)
    book.rank(0).silent = {"evaluate"}
    frame = frame_of(client, book.thread(0))
    waiting = client.ask("evaluate", frameId=frame, expression="loss")
    book.wait(3600)
    assert waiting.response is None
    book.answers(0)
    assert waiting.body["result"] == "0"


def test_an_answer_that_comes_while_its_rank_leaves(play: Play) -> None:
    """What it gives out then ends with the connection, as everything before."""
    book, client = play.attached(2)
    book.rank(0).data.values["loss"] = "{'mean': 1.5}"
    book.rank(0).silent = {"evaluate"}
    waiting = client.ask("evaluate", expression="loss")
    client.ask("release", ranks="all")
    book.answers(0)
    assert waiting.body["variablesReference"]
    book.wait(2)
    assert len(book.engine.core.handles) == 0
