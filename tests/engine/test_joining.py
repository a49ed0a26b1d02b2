"""Who joins, what a joiner is told of the session's settings, and what observers may not do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, introduced
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client


def join(book: Playbook, name: str = "joiner", **arguments: Any) -> Client:
    """A second client, up to the end of its handshake."""
    client = introduced(book, name)
    client.ask("attach", **arguments)
    client.ask("configurationDone")
    return client


def told(client: Client) -> str:
    """What the console shows of the session's settings."""
    bodies = client.of("output")
    return "".join(body["output"] for body in bodies if body.get("category") == "console")


def test_a_joiner_who_differs_is_told(play: Play) -> None:
    """One session has one justMyCode: which attribute, and what is in force."""
    book = play(1)
    attached(book, "first", justMyCode=False, rules=[{"path": "/a", "include": False}])
    joiner = join(book, justMyCode=True, rules=[], showReturnValue=True, view="classes")
    assert told(joiner).splitlines() == [
        "dap-mux: the first client of this session has configured it; in effect for all clients:",
        "  justMyCode is false, not true as in your configuration",
        "  rules differs from your configuration",
        "  showReturnValue is false, not true as in your configuration",
        "  view is auto, not classes as in your configuration",
    ]


def test_defaults_that_an_editor_has_filled_in_are_not_asked_for(play: Play) -> None:
    """Its user is told nothing of an attribute that is not in the configuration."""
    book = play(1)
    attached(book, "first")
    joiner = join(book, showReturnValue=True, __defaults=["showReturnValue"])
    assert told(joiner) == ""


def test_a_joiner_who_asks_for_the_same_is_told_nothing(play: Play) -> None:
    """Neither of what is its own: where its files are, how it is named, what its editor does."""
    book = play(1)
    attached(book, "first", justMyCode=True, preLaunchTask="build")
    own: dict[str, Any] = {
        "name": "mine",
        "type": "debugpy",
        "request": "attach",
        "__sessionId": "x",
    }
    mappings = [{"localRoot": "/elsewhere", "remoteRoot": "/job"}]
    own |= {"subProcess": False, "pathMappings": mappings}
    joiner = introduced(book, "joiner")
    joiner.send("attach", **own)
    joiner.ask("configurationDone")
    assert told(joiner) == ""


def test_an_attribute_that_nobody_set(play: Play) -> None:
    """It has no effect, and the joiner hears so."""
    book = play(1)
    attached(book, "first")
    assert "  newThing is not set, so yours has no effect" in told(join(book, newThing=[1]))


def test_the_next_first_client_sets_it_up_anew(play: Play) -> None:
    """Nobody is left: who comes now is the first again, and is told nothing."""
    book = play(1)
    first = attached(book, "first", justMyCode=True)
    first.ask("disconnect")
    book.wait(1)
    second = join(book, justMyCode=False)
    assert told(second) == ""
    assert (book.rank(0).attached_with or {})["justMyCode"] is False


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("setBreakpoints", {"source": {"path": PATH}, "breakpoints": [{"line": LINE}]}),
        ("setExceptionBreakpoints", {"filters": ["raised"]}),
        ("configurationDone", {}),
        ("next", {"threadId": 1}),
        ("terminate", {}),
        ("view", {"value": "classes"}),
        ("scope", {"value": "rank"}),
    ],
)
def test_what_an_observer_may_not_do(play: Play, command: str, arguments: dict[str, Any]) -> None:
    """It is refused with the reason, and nothing reaches a rank."""
    book = play(1)
    attached(book, "editor")
    observer = introduced(book, "observer")
    observer.ask("attach", role="observer")
    before = book.rank(0).last_breakpoints
    assert "observer" in observer.ask(command, **arguments).refusal
    assert book.rank(0).last_breakpoints == before
    assert not book.ended_job


def test_an_observer_may_ask(play: Play) -> None:
    """What is in force, without changing it."""
    book = play(1)
    observer = introduced(book, "observer")
    observer.ask("attach", role="observer")
    assert observer.ask("view").body == {"value": "auto"}
    assert observer.ask("scope").body == {"value": "auto"}


def test_an_observer_leaves_no_breakpoints(play: Play) -> None:
    """What it set before it said that it only looks is forgotten."""
    book = play(1)
    attached(book, "editor")
    observer = introduced(book, "observer")
    observer.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 8}])
    observer.ask("attach", role="observer")
    assert book.rank(0).last_breakpoints == [{"line": LINE}]


def test_observers_keep_no_session(play: Play) -> None:
    """The last controller leaves and every rank runs on, whoever watches."""
    book = play(2)
    editor = attached(book, "editor")
    observer = introduced(book, "observer")
    observer.ask("attach", role="observer")
    book.hits(LINE, 0)
    editor.ask("disconnect")
    assert book.rank(0).data.stopped is None
    assert observer.ask("list").body["counts"]["waiting"] == 2


def test_the_first_leaves_and_the_second_goes_on(play: Play) -> None:
    """Nobody is resumed, the joiner's breakpoints stay, and it can step."""
    book = play(2)
    first = attached(book, "first")
    second = join(book, "second", justMyCode=True)
    second.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 8}])
    book.hits(LINE, 0, 1)
    first.ask("disconnect")
    assert all(rank.data.stopped for rank in book.ranks.values())
    assert book.rank(0).last_breakpoints == [{"line": 8}]
    second.ask("next", threadId=book.thread(0))
    book.wait(1)
    assert second.of("stopped")[-1]["reason"] == "step"
