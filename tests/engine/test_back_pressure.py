"""A client that does not read loses output, is told how much, and nothing else is lost."""

from __future__ import annotations

import pytest

from dap_mux.engine.messages.to_clients import readable_size
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached


def test_a_client_that_does_not_read(play: Play) -> None:
    book = play(2)
    slow, other = attached(book, name="slow"), attached(book, name="other")
    slow.stalls()
    with book.happens():
        for step in range(3):
            book.rank(0).prints(f"step {step}\n")
        book.rank(1).prints("no end")
        book.rank(1).hits(LINE)
    book.wait(0.1)
    assert [body["output"] for body in other.of("output")][:2] == [
        "[0] step 0\n[0] step 1\n[0] step 2\n",
        "[1] no end",
    ]
    assert not slow.of("output")
    own = {"hitBreakpointIds": None}  # each has its own
    assert [{**stop, **own} for stop in slow.of("stopped")] == [
        {**stop, **own} for stop in other.of("stopped")
    ]
    assert slow.ask("threads").body == other.ask("threads").body
    slow.reads()
    (note,) = slow.of("output")
    assert "4 lines of output (43 B) were dropped" in note["output"]
    book.rank(0).prints("step 3\n")
    book.wait(0.1)
    assert slow.of("output")[-1] == other.of("output")[-1]


def test_who_has_missed_nothing_is_told_nothing(play: Play) -> None:
    _, client = play.attached(2)
    client.stalls()
    client.reads()
    assert not client.of("output")


def test_one_line_is_one_line(play: Play) -> None:
    book, client = play.attached(2)
    client.stalls()
    book.rank(0).prints("step 1\n")
    book.wait(0.1)
    client.reads()
    (note,) = client.of("output")
    assert note["output"].startswith("dap-mux: 1 line of output (11 B) was dropped, ")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_234_567, "1.2 MB"),
        (200e6, "200.0 MB"),
        (3.21e9, "3.2 GB"),
    ],
)
def test_sizes(size: float, text: str) -> None:
    assert readable_size(size) == text
