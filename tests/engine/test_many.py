"""Hundreds of ranks, and hundreds of breakpoints."""

from __future__ import annotations

from typing import Final

import pytest

from dap_mux.engine.breakpoints.store import COALESCE_WINDOW_S, MANY_RANKS
from dap_mux.engine.stops.aggregate import MANY_AT_ONCE
from tests.engine.conftest import Play
from tests.engine.scenes import LINE
from tests.support.scripted.playbook import Playbook

EACH = MANY_AT_ONCE + 1


def stop(book: Playbook, first: int, count: int) -> None:
    with book.happens():
        for number in range(first, first + count):
            book.rank(number).hits(LINE)


def test_who_comes_by_the_hundred_is_waited_for(play: Play) -> None:
    """One stop and one row, whether a window is over or not, until few come."""
    with_more = 3 * EACH + 1
    book, client = play.attached(with_more + 1)
    with book.quietly(f"{with_more} ranks stop, {EACH} in each window and the last in another"):
        for part in range(3):
            stop(book, part * EACH, EACH)
            book.wait(0.05)
            assert not client.of("stopped")
        stop(book, 3 * EACH, 1)
        book.wait(0.05)
    assert len(client.of("stopped")) == 1
    with book.quietly("client lists the ranks"):
        counts = client.ask("list").body["counts"]
    assert (counts["stopped"], counts["running"]) == (with_more, 1)


@pytest.mark.parametrize("late", [1, EACH])
def test_late_ones_are_told_together(play: Play, late: int) -> None:
    """They are in the row of those who stand there already."""
    book, client = play.attached(EACH + late + 1)
    with book.quietly(f"{EACH} ranks stop, and {late} more a second later"):
        stop(book, 0, EACH)
        book.wait(1)
        stop(book, EACH, late)
        book.wait(1)
    rows = [row["name"] for row in client.ask("threads").body["threads"]]
    assert len(rows) == 3
    assert any(f"{EACH + late - 1} × train.py:{LINE}" in row for row in rows)


# Breakpoints in hundreds of ranks: what changes in many of them is told together.

MANY: Final = MANY_RANKS + 1


def test_what_moves_in_many_ranks_is_told_once(play: Play) -> None:
    """It ends as if each had been told of by itself."""
    book, client = play.attached(1)
    with book.quietly(f"{MANY} more ranks come"), book.happens():
        for number in range(1, MANY + 1):
            book.know(number)
    book.wait(COALESCE_WINDOW_S)
    before = len(client.of("breakpoint"))
    with book.quietly("each rank's breakpoint moves by a line"), book.happens():
        for rank in book.ranks.values():
            rank.event(
                "breakpoint", reason="changed", breakpoint={"id": 0, "verified": True, "line": 7}
            )
    assert len(client.of("breakpoint")) == before
    book.wait(COALESCE_WINDOW_S)
    [event] = client.of("breakpoint")[before:]
    assert event["breakpoint"]["line"] == 7
