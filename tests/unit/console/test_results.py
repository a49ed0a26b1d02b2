"""How many ranks' answers read."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.frontends.console.screen import (
    PlainScreen,
    fitted,
    ranks_table,
    show_cast,
    show_compare,
    sparkline,
)
from tests.support.clients.consoles import cells

NOTHING: dict[str, Any] = {"results": [], "errors": [], "missing": ""}


def result(ranks: str, value: str, *, outlier: bool = False) -> dict[str, Any]:
    rest = {"type": "", "variablesReference": 0}
    return {"ranks": ranks, "value": value, "outlier": outlier, **rest}


def cast(*results: dict[str, Any], single: bool = False, **more: Any) -> str:
    shown: list[str] = []
    body = {**NOTHING, "results": list(results), **more}
    show_cast(PlainScreen(shown.append), body, single=single)
    return "".join(shown)


def row(rank: int, line: int, **more: Any) -> dict[str, Any]:
    place = {"path": "/job/hang.py", "module": "hang", "function": "load", "line": line}
    return {
        **place, "group": "job", "rank": rank, "worker": None, "coords": "", "host": "127.0.0.1",
        "state": "stopped", "reason": "breakpoint", "exitCode": None, **more,
    }  # fmt: skip


def test_a_narrow_terminal_has_the_columns_that_differ() -> None:
    table = ranks_table([row(0, 7), row(1, 23)])
    assert fitted(table, table.width) == table
    assert fitted(table, 80).head == (
        *("Actor Name", "Rank", "Hostname", "Place", "State", "Reason"),
    )
    narrow = fitted(table, 40)
    assert (narrow.head, narrow.rows) == (
        ("Rank", "Place", "Reason"),
        (("0", "hang.py:7 load", "breakpoint"), ("1", "hang.py:23 load", "breakpoint")),
    )
    assert fitted(table, 20).head == ("Rank", "Place")


def test_a_reason_is_kept_and_folded_ranks_are_named() -> None:
    held = ranks_table([row(3, 7, reason="ValueError: shard-3 is truncated at step 20")])
    assert fitted(held, 40).head == ("Rank", "Place", "Reason")
    many = ranks_table([row(rank, 7 + rank // 32) for rank in range(64)], "classes")
    assert fitted(many, 50).head == ("Ranks", "Place", "State", "Reason")


def test_outliers_come_first_and_are_marked() -> None:
    odd = [result("0-3,5-7", "2.31"), result("4", "nan", outlier=True)]
    assert cast(*odd) == "⚠ {4}: nan | {0-3,5-7}: 2.31\n"
    assert cast(result("0-7", "2.31")) == "{0-7}: 2.31\n"


def test_numbers_side_by_side_have_six_digits() -> None:
    long = "0.09038551498866008"
    assert cast(result("0", long), result("1", "1.5")) == "{0}: 0.0903855… | {1}: 1.5\n"
    assert cast(result("0-1", long)) == f"{{0-1}}: {long}\n"


def test_long_answers_have_lines_of_their_own() -> None:
    shown = cast(result("0-1", "x" * 99), result("2", "y", outlier=True))
    assert shown == f"⚠ {{2}}: y\n{{0-1}}: {'x' * 99}\n"
    assert cast(result("0", "a\nb")) == "{0}:\na\nb\n"


def test_who_answered_while_it_ran_is_said() -> None:
    shown = cast(result("0", "{}"), result("1", "{'x': 1}"), inMain="1")
    assert "{1}: running, so evaluated in __main__" in shown
    assert "running" not in cast(result("0", "1"), inMain="")


def test_one_rank_needs_no_name() -> None:
    assert cast(result("13", "655"), single=True) == "655\n"
    error = {"ranks": "13", "message": "NameError: name 'y' is not defined"}
    assert cast(errors=[error], single=True) == "NameError: name 'y' is not defined\n"


def test_errors_and_the_missing_are_named() -> None:
    shown = cast(result("0", "1"), errors=[{"ranks": "2-3", "message": "no x"}], missing="12")
    assert shown == "{0}: 1\n{2-3}: no x\nno response from 12\n"


def test_what_ranks_say_steers_no_terminal() -> None:
    assert "\x1b" not in cast(result("0", "\x1b[2J\x07"), missing="\x1b")


def test_compare() -> None:
    shown: list[str] = []
    statistics = {"min": 1.0, "max": 3.0, "mean": 1.5, "std": None, "nan": 1, "inf": 0}
    histogram = {"edges": [1, 2, 3], "counts": [3, 1]}
    body = {
        "values": [result("0-2", "1.0"), result("5", "3\x1b.0", outlier=True)],
        "statistics": {**statistics, "histogram": histogram},
        "outliers": "5",
        "errors": [],
        "missing": "7",
    }
    show_compare(PlainScreen(shown.append), body)
    text = "".join(shown)
    assert cells(text) == [["Ranks", "Value"], ["⚠ {5}", "3\\x1b.0"], ["{0-2}", "1.0"]]
    assert "min 1 · max 3 · mean 1.5 · std - · 1 nan · █▄" in text
    assert text.endswith("no response from 7\n")


@pytest.mark.parametrize(
    ("counts", "bars"), [([], ""), ([0, 0], ""), ([1, 0, 100], "▂▁█"), ([5], "█")]
)
def test_a_bar_for_each_bin(counts: list[int], bars: str) -> None:
    assert sparkline({"edges": [], "counts": counts}) == bars
