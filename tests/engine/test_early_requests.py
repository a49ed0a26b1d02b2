"""Requests that need a rank, sent before any rank takes them: they wait, as with debugpy alone."""

from __future__ import annotations

from tests.engine.conftest import Play
from tests.engine.scenes import attached, introduced
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

PROPERTY = {"skipPrintBreakpointException": ["NameError"]}


def beginning(book: Playbook) -> Client:
    """A client that has sent `attach` to two ranks whose adapters are starting."""
    for number in range(2):
        book.know(number, ready=False).met = False
    client = introduced(book)
    client.send("attach", justMyCode=True)
    return client


def starts(book: Playbook, number: int) -> None:
    """The rank's adapter has met its rank: it takes requests now."""
    with book.happens():
        book.rank(number).met = True
        book.rank(number).sockets()


def test_a_property_is_kept_for_ranks_to_come(play: Play) -> None:
    """`setDebuggerProperty` is answered at once, and sent to every rank before it runs on."""
    book = play()
    client = beginning(book)
    assert client.ask("setDebuggerProperty", **PROPERTY).body == {}
    client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 6}])
    client.ask("configurationDone")
    for number in range(2):
        starts(book, number)


def test_a_property_reaches_all_ranks(play: Play) -> None:
    """It is about the debugger, not about the rank in focus."""
    assert attached(play(3)).ask("setDebuggerProperty", **PROPERTY).body == {}


def test_an_expression_waits_for_the_first_rank(play: Play) -> None:
    """An `evaluate` without a frame is answered once a rank is being configured."""
    book = play()
    client = beginning(book)
    answer = client.ask("evaluate", expression="1 + 1")
    assert answer.response is None
    starts(book, 1)
    assert answer.response is not None
    client.ask("configurationDone")


def test_it_waits_no_longer_than_a_request_may_take(play: Play) -> None:
    """Where no rank comes up, the request is refused."""
    book = play()
    client = beginning(book)
    answer = client.ask("modules", startModule=0)
    for rank in book.ranks.values():
        rank.refuses["attach"] = "not now"
    book.wait(2)
    assert answer.response is None
    book.wait(4)
    assert answer.refusal == "no rank is attached yet"
    client.ask("configurationDone")
