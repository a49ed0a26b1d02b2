"""What a benchmark reads off the prompts of two debuggers."""

from __future__ import annotations

import pytest

from tests.bench.figures import ahead, not_measured
from tests.bench.prompts import all_moved, answered_in, places_in

TABLE = """\
+--------------+--------+------------+------------+------------+------------+
| Actor Name   |   Rank | Coords     | Hostname   | Function   |   Line No. |
+==============+========+============+============+============+============+
| debugee      |      0 | {'gpus': 0} | localhost  | work.work  |         12 |
+--------------+--------+------------+------------+------------+------------+
| debugee      |     15 | {'gpus': 1} | localhost  | work.step  |          2 |
+--------------+--------+------------+------------+------------+------------+
monarch_dbg> """


def test_the_table_of_both() -> None:
    assert places_in(TABLE) == {0: ("work.work", "12"), 15: ("work.step", "2")}


def test_all_have_moved_when_everybody_is_shown_elsewhere() -> None:
    before = {0: ("work", "1"), 1: ("work", "1")}
    assert all_moved(before, {0: ("work", "2"), 1: ("step", "1")})
    assert not all_moved(before, {0: ("work", "2"), 1: ("work", "1")}), "one stands"
    assert not all_moved(before, {0: ("work", "2")}), "one is not shown"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("{0-3,5}: 7 | *{4}: 8\n", 6),
        ("{0-15}: 10\ndap-mux> ", 16),
        ("monarch_dbg> " + TABLE, 0),
        ("7\n8\n", 2),
    ],
)
def test_answers_that_a_cast_shows(text: str, count: int) -> None:
    assert answered_in(text) == count


def test_ahead_is_less_and_not_as_much() -> None:
    assert ahead("x", 0.9, 1.0, "theirs").held is True
    assert ahead("x", 1.0, 1.0, "theirs").held is False


def test_what_is_lacking_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAP_MUX_REQUIRE_ALL", raising=False)
    assert not_measured("x", "no wheel").held is None
    monkeypatch.setenv("DAP_MUX_REQUIRE_ALL", "1")
    assert not_measured("x", "no wheel").held is False
