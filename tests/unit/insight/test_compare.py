"""Values of many ranks side by side: groups, outliers, numbers as numpy describes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dap_mux.pure.insight.compare import (
    Comparison,
    compare,
    describe,
    histogram,
    number_of,
    sparkline,
    spread,
)
from dap_mux.pure.protocol.types import EXACT, Tolerance


def of(*values: object, tolerance: Tolerance = EXACT) -> Comparison:
    """What ranks 0, 1, … said."""
    said = {("job", rank): str(value) for rank, value in enumerate(values)}
    return compare(said, tolerance)


def groups(comparison: Comparison) -> list[tuple[str, list[int]]]:
    return [(one.value, [rank for _, rank in one.ranks]) for one in comparison.groups]


def outliers(*values: object, tolerance: Tolerance = EXACT) -> list[int]:
    return sorted(rank for _, rank in of(*values, tolerance=tolerance).outliers)


class TestGroups:
    def test_most_ranks_first_then_the_lowest_rank(self) -> None:
        assert groups(of("b", "a", "b", "c")) == [("b", [0, 2]), ("a", [1]), ("c", [3])]

    def test_outliers_are_last_however_many_there_are(self) -> None:
        comparison = of(2.31, 2.32, "nan", 2.33, "nan", 2.34, 2.35)
        assert groups(comparison)[-1] == ("nan", [2, 4])
        assert [one.outlier for one in comparison.groups] == [False] * 5 + [True]

    def test_without_tolerance_only_the_same_text_is_equal(self) -> None:
        assert groups(of("1", "1.0")) == [("1", [0]), ("1.0", [1])]

    def test_a_tolerance_joins_what_is_close_to_the_commonest(self) -> None:
        close = Tolerance(relative=0.01)
        assert groups(of(100, 100.5, 100, 102, "x", tolerance=close)) == [
            ("100", [0, 1, 2]),
            ("102", [3]),
            ("x", [4]),
        ]

    def test_a_tolerance_does_not_creep(self) -> None:
        """0, 1, 2, 3 are not all the same because each neighbour is close."""
        assert len(of(0, 1, 2, 3, tolerance=Tolerance(absolute=1)).groups) == 2

    def test_nan_is_the_same_as_nan(self) -> None:
        assert groups(of("nan", "nan", tolerance=Tolerance(absolute=1))) == [("nan", [0, 1])]

    @given(
        st.dictionaries(
            st.tuples(st.just("job"), st.integers(0, 30)),
            st.sampled_from("1 2 nan inf x None".split()),
        )
    )
    def test_every_rank_is_in_exactly_one_group(self, said: dict[tuple[str, int], str]) -> None:
        comparison = compare(said)
        placed = [rank for one in comparison.groups for rank in one.ranks]
        assert sorted(placed) == sorted(said)
        assert all(said[rank] == one.value for one in comparison.groups for rank in one.ranks)
        flags = [one.outlier for one in comparison.groups]
        assert flags == sorted(flags)
        assert 2 * len(comparison.outliers) <= max(0, len(said) - 1)


class TestOutliers:
    @pytest.mark.parametrize(
        ("values", "ranks"),
        [
            ([2.31, 2.31, 2.31, "nan"], [3]),
            ([2.31, 2.30, 2.33, 2.29, 9.5], [4]),
            ([7, 7, 7, 8], [3]),
            (range(64), []),
            ([1, 2], []),
            ([1, "nan"], []),
            (["nan", "nan", "nan", 1], [3]),
            (["nan", "inf", "nan", "nan"], [1]),
            (["a", "a", "b"], [2]),
            (["a", "b", "c"], []),
            (["a", "a", "b", "b"], []),
            ([1, 2, 3, "None"], [3]),
            (["None", "None", "None", 1], [3]),
            (["None", "None", 1, 2], []),
            (["a", "b", "c", 1], [3]),
            (["True", "True", "False"], [2]),
            ([], []),
            ([5], []),
            ([1e308, -1e308, 1e308, 1e308], [1]),
        ],
    )
    def test_who_is_one(self, values: list[object], ranks: list[int]) -> None:
        assert outliers(*values) == ranks

    def test_arrays_that_all_differ_are_compared_by_their_norms(self) -> None:
        array = "Tensor[16, 3] float32 cpu · norm {} · nan 0 · inf 0"
        norms = [array.format(each) for each in (3.18, 3.19, 18.4, 3.16, 3.17)]
        assert outliers(*norms) == [2]
        assert of(*norms).statistics is None
        other = array.format(0).replace("16", "15")
        assert outliers(array.format(0), array.format(0), other) == [2]
        assert outliers(*norms[:3], "None", "x" * 9999 + norms[0]) == [3, 4]

    def test_what_is_within_the_tolerance_is_none(self) -> None:
        assert outliers(1, 1, 1, 1.001) == [3]
        assert outliers(1, 1, 1, 1.001, tolerance=Tolerance(relative=0.01)) == []
        assert outliers(1, 1, 1, 3, tolerance=Tolerance(absolute=1.5)) == [3]

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
    def test_never_half_of_the_numbers(self, numbers: list[float]) -> None:
        assert 2 * len(outliers(*numbers)) < len(numbers)


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("3", 3), ("-2.5", -2.5), ("1e-05", 1e-5), ("1.", 1), (".5", 0.5), ("inf", math.inf),
            ("-inf", -math.inf), ("True", None), ("None", None), ("", None), ("1_0", None),
            ("'3'", None), ("0x10", None), ("infinity", None), ("(1)", None), ("3 ", None),
            ("9" * 401, None), ("9" * 399, math.inf), ("١", None),
        ],
    )  # fmt: skip
    def test_what_is_a_number(self, text: str, number: float | None) -> None:
        assert number_of(text) == number

    @given(st.floats() | st.integers(-(10**18), 10**18))
    def test_every_number_that_python_writes(self, number: float) -> None:
        read = number_of(repr(number))
        assert read is not None
        assert read == float(number) or math.isnan(number)

    @given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40))
    def test_as_numpy_describes_them(self, numbers: list[float]) -> None:
        said = describe(numbers)
        close = pytest.approx
        assert (said.min, said.max) == (min(numbers), max(numbers))
        assert said.mean == close(np.mean(numbers), rel=1e-9, abs=1e-3)
        assert said.std == close(np.std(numbers), rel=1e-6, abs=1e-3)

    @given(st.lists(st.floats(-1000, 1000).map(lambda x: round(x, 2)), min_size=2, max_size=60))
    def test_the_histogram_is_numpys(self, numbers: list[float]) -> None:
        assume(min(numbers) < max(numbers))
        found = histogram(numbers)
        assert found is not None
        assert sum(found.counts) == len(numbers)
        assert found.edges == pytest.approx(np.histogram_bin_edges(numbers, bins=10))
        for number in numbers:  # each in its own bin, or beside an edge that rounding has moved
            assert any(
                found.edges[i] - 1e-9 <= number <= found.edges[i + 1] + 1e-9
                for i, count in enumerate(found.counts)
                if count
            )

    def test_nan_and_inf_are_counted_and_left_out(self) -> None:
        said = describe([1.0, math.nan, math.inf, 3.0, -math.inf])
        assert (said.min, said.max, said.mean, said.std) == (1, 3, 2, 1)
        assert (said.nan, said.inf) == (1, 2)

    def test_nothing_finite(self) -> None:
        said = describe([math.nan, math.inf])
        assert (said.min, said.mean, said.histogram) == (None, None, None)
        assert (said.nan, said.inf) == (1, 1)

    def test_equal_numbers_and_numbers_too_far_apart(self) -> None:
        equal = histogram([2.0, 2.0])
        assert equal is not None
        assert (equal.edges, equal.counts) == ((2.0, 2.0), (2,))
        far = describe([1.7e308, -1.7e308])
        assert (far.mean, far.histogram) == (0, None)

    def test_statistics_only_where_most_are_numbers(self) -> None:
        assert of(1, 2, "None").statistics is not None
        assert of(1, "None").statistics is None
        assert of().statistics is None


def test_sparkline() -> None:
    assert sparkline([0, 1, 4, 8]) == " ▂▅█"
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "  "


def test_spread_over_ranks() -> None:
    """A bar for each, scaled from the lowest to the highest; no number is seen as such."""
    assert spread([1.0, 1.0, 9.0, 5.0]) == "▁▁█▅"
    assert spread([2.0, None, math.nan, 3.0]) == "▁××█"
    assert spread([4.0, 4.0]) == "▁▁"
    assert spread([None]) == spread([]) == ""
    assert spread([-1.7e308, 1.7e308]) == "▁█"


@pytest.mark.parametrize("odd", [0, 300, 511])
def test_of_many_ranks_the_odd_one_is_seen(odd: int) -> None:
    numbers: list[float | None] = [1.0 + rank / 1000 for rank in range(512)]
    numbers[odd] = 340268.0
    bars = spread(numbers)
    assert len(bars) == 16
    assert bars.index("█") == odd // 32
    assert bars.count("▁") == 15
