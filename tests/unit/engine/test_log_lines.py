"""Lines of logpoints: which of them are an outlier's."""

from __future__ import annotations

from typing import Final

import pytest

from dap_mux.engine.session.log_lines import MAX_PLACES, Line, LogPlace, Outliers, place_of

HERE: Final = LogPlace("/train.py", 12)


def line(text: str, *ranks: int, place: LogPlace | None = HERE) -> Line:
    return Line([("job", number) for number in ranks], "stdout", f"{text}\n", place=place)


def marked(outliers: Outliers, *lines: Line) -> list[str]:
    """What is marked of the lines of one moment."""
    outliers.mark(lines)
    return [one.text.strip() for one in lines if one.outlier]


def test_a_text_that_most_ranks_have_not_logged() -> None:
    lines = line("step 5: m", 0, 1, 3), line("step 5: mm", 2)
    assert marked(Outliers(), *lines) == ["step 5: mm"]


def test_a_number_that_is_far_from_the_others() -> None:
    losses = {0: "0.0904", 1: "0.0550", 2: "340268", 3: "0.0469"}
    lines = [line(f"step 5: loss={loss}", rank) for rank, loss in losses.items()]
    assert marked(Outliers(), *lines) == ["step 5: loss=340268"]
    lines = [line(f"loss {text}", n) for n, text in enumerate(("0.1", "nan", "0.11", "0.12"))]
    assert marked(Outliers(), *lines) == ["loss nan"]


def test_a_line_that_stands_for_others_is_that_line() -> None:
    lines = line("step 5: m  (1,204 more like it in 0.06 s)", 0), line("step 5: m", 1, 3)
    assert marked(Outliers(), *lines) == []
    assert marked(Outliers(), *lines, line("step 5: mm", 2)) == ["step 5: mm"]
    ahead = line("step 19: m  (9 more like it in 0.06 s)", 0)
    assert marked(Outliers(), ahead, line("step 10: m", 1), line("step 9: m", 3)) == []


def test_a_rank_that_is_a_step_behind_or_ahead_is_none() -> None:
    outliers = Outliers()
    assert marked(outliers, line("step 4", 0, 1, 2)) == []
    assert marked(outliers, line("step 5", 0, 1, 2), line("step 4", 3)) == []
    assert marked(outliers, line("step 5", 3), line("step 6", 0)) == []
    assert marked(outliers, line("step 6", 1, 2, 3), line("step 7", 0)) == []
    apart = [line(f"step {n}: m", rank) for rank, n in enumerate((5, 9, 10, 9))]
    assert marked(Outliers(), *apart) == []
    behind = [line(f"step {5 - (rank == 3)}: loss 0.{rank}9", rank) for rank in range(4)]
    assert marked(Outliers(), *behind) == []


def test_a_late_line_is_compared_with_the_others_of_its_numbers() -> None:
    outliers = Outliers()
    assert marked(outliers, line("step 5: m", 0, 1, 3)) == []
    assert marked(outliers, line("step 6: m", 0, 1), line("step 5: mm", 2)) == ["step 5: mm"]
    assert marked(outliers, line("step 7: m", 0, 1, 2), line("step 6: m", 3)) == []
    assert marked(outliers, line("no number", 3)) == []


@pytest.mark.parametrize("second", ["b", "c 7"])
def test_two_of_four_are_no_outliers(second: str) -> None:
    assert marked(Outliers(), line("a", 0, 1), line(second, 2, 3)) == []


def test_what_is_printed_is_not_compared_nor_lines_of_other_places() -> None:
    lines = line("a", 0, 1, 3, place=None), line("b", 2, place=None)
    assert marked(Outliers(), *lines) == []
    assert marked(Outliers(), line("a", 0, 1, 3), line("b", 2, place=LogPlace("/x.py", 1))) == []


def test_what_is_remembered_is_bounded() -> None:
    outliers = Outliers()
    for number in range(10 * MAX_PLACES):
        outliers.mark([line("a", 0, place=LogPlace("/a.py", number))])
    assert len(outliers._places) == MAX_PLACES


@pytest.mark.parametrize(
    "rest",
    [{}, {"line": 3}, {"source": None}, {"source": {"path": 7}, "line": 3},
     {"source": {"path": "/a"}, "line": "3"}, {"source": {"path": "/a"}, "line": 3, "data": 1}],
)  # fmt: skip
def test_what_is_no_line_of_a_logpoint(rest: dict[str, object]) -> None:
    assert place_of(rest) is None
    assert place_of({"source": {"path": "/a"}, "line": 3, "data": None}) == LogPlace("/a", 3)
