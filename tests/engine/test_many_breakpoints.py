"""Breakpoints in hundreds of ranks: what changes in many of them is told together."""

from __future__ import annotations

from typing import Final

from dap_mux.engine.breakpoints.sending import COALESCE_WINDOW_S, MANY_RANKS
from tests.engine.conftest import Play

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
