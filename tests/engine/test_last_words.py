"""What a client is told at the end, and that nothing is told after it."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import KINDS, LINE

each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_nothing_follows_terminated(kind: str, rehearse: Play) -> None:
    """All ranks are killed where they stand, before the stop has been applied."""
    book, client = rehearse.attached(2, kind=kind)
    book.hits(LINE)
    for rank in book.ranks.values():
        rank.exits()
    book.pump()
    book.wait(5)
    assert client.events[-1]["event"] == "terminated"
    gone = [number for number, one in enumerate(client.events) if one["event"] == "thread"]
    late = [one["event"] for one in client.events[gone[-1] :]]
    assert "continued" not in late


@each_kind
def test_a_rank_that_is_gone_is_not_said_to_run(kind: str, rehearse: Play) -> None:
    """The one that was stopped is killed, and the other runs: it is the one that is told of."""
    book, client = rehearse.attached(2, kind=kind)
    book.hits(LINE, 0)
    book.wait(0.1)
    assert client.of("stopped")
    told = len(client.events)
    book.exits(0)
    client.ask("threads")
    book.wait(5)
    events = client.events[told:]
    left = next(n for n, one in enumerate(events) if one["event"] == "thread")
    late = [one["body"]["threadId"] for one in events[left:] if one["event"] == "continued"]
    assert book.thread(0) not in late


def test_disconnect_is_answered_behind_terminated(rehearse: Play) -> None:
    """As debugpy does; the connection is closed after both."""
    _, client = rehearse.stopped(2)
    assert client.ask("disconnect").body == {}
    assert client.events[-1]["event"] == "terminated"
    assert client.closed


def test_a_session_that_has_ended_says_so_once(rehearse: Play) -> None:
    """Who takes leave then has been told."""
    book, client = rehearse.attached(1)
    book.exits(0)
    book.wait(1)
    assert [one["event"] for one in client.events].count("terminated") == 1
    client.ask("disconnect")
    assert [one["event"] for one in client.events].count("terminated") == 1
