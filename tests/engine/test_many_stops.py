"""Hundreds of ranks stop, and not all within one window."""

from __future__ import annotations

import pytest

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
