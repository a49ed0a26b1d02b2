"""Wrong arguments are refused by name; nothing of them reaches a rank or another client."""

from __future__ import annotations

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attach
from tests.support.scripted.playbook import PATH

AT = {"source": {"path": PATH}}
WRONG: list[dict[str, object]] = [
    {},
    {"line": None},
    {"line": "7"},
    {"line": 7, "condition": 5},
    {"line": 7, "self": 1},
]
NULLS = {"line": LINE, "condition": None, "hitCondition": None, "logMessage": None}


def test_null_in_a_breakpoint_is_absent(play: Play) -> None:
    """`"condition": null` and its like, before the ranks attach and after."""
    book, client = play.introduced(2)
    client.ask_wrongly("setBreakpoints", {**AT, "breakpoints": [NULLS]})
    client.ask("attach", justMyCode=True)
    client.ask("configurationDone")
    assert client.ask("list").body["counts"]["running"] == 2
    body = client.ask_wrongly("setBreakpoints", {**AT, "breakpoints": [NULLS]}).body
    assert body["breakpoints"][0]["verified"]
    assert book.rank(0).last_breakpoints == [{"line": LINE}]


def test_what_is_refused_leaves_all_as_it_was(play: Play) -> None:
    """Wrong arguments of several requests; the client goes on with right ones."""
    book, client = play.stopped(2)
    for rank in book.ranks.values():
        rank.last_breakpoints = []
    for command, arguments in (
        *(("setBreakpoints", {**AT, "breakpoints": [wrong]}) for wrong in WRONG),
        ("source", {"source": 5, "sourceReference": 0}),
        ("stackTrace", {"threadId": "1"}),
        ("evaluate", {"expression": None}),
        ("setExceptionBreakpoints", {"filters": [], "exceptionOptions": [{"path": [{}]}]}),
        ("setFunctionBreakpoints", {"breakpoints": [{"name": 5}]}),
        ("next", {"threadId": 1.5}),
        ("continue", {"threadId": [1]}),
    ):
        assert client.ask_wrongly(command, arguments).refusal.startswith(f"{command}: ")
    assert all(rank.last_breakpoints == [] for rank in book.ranks.values())
    assert client.ask("evaluate", expression="loss", context="watch").body["result"] == "0"
    client.ask("continue", threadId=book.thread(0))
    assert not any(rank.dead for rank in book.ranks.values())


def test_a_wrong_attach_may_be_tried_again(play: Play) -> None:
    """What debugpy would not take in `attach` is refused before any rank is told of it."""
    book, client = play.introduced(1)
    refusal = client.ask("attach", clientOS="macos").refusal
    assert refusal == "attach: clientOS must be windows or unix"
    client.ask("attach", clientOS="unix", subProcessId=7, whatever=[None])
    client.ask("configurationDone")
    assert client.ask("list").body["counts"]["running"] == 1
    told = book.rank(0).attached_with
    assert told is not None
    assert "subProcessId" not in told
    assert told["whatever"] == [None]


def test_empty_tables_of_lua(play: Play) -> None:
    """`{}` where a list is due is the empty list."""
    book = play(1)
    client = book.client()
    attach(client)
    assert client.ask_wrongly("setBreakpoints", {**AT, "breakpoints": {}}).body == {
        "breakpoints": []
    }
    client.ask_wrongly("setExceptionBreakpoints", {"filters": {}, "filterOptions": {}})
