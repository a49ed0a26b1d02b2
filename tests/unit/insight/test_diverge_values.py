"""Runs of other numbers of ranks, by sums of values: small traces made here."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.numerics.diverge_runs import Parting
from dap_mux.pure.insight.numerics.diverge_trace import RankTrace
from dap_mux.pure.insight.numerics.diverge_values import first_beyond
from tests.unit.insight.test_diverge import step
from tests.unit.insight.test_diverge import trace as trace_of

EPSILON = 2**-23


def sums(*values: float) -> list[float]:
    """Those of a value with these elements; four at most, so each projection is one of them."""
    square = sum(value * value for value in values)
    return [EPSILON, len(values), square, *(2 * value for value in (*values, 0, 0, 0, 0)[:4])]


def trace(rank: int, *steps: dict[str, tuple[list[float], list[float]]]) -> RankTrace:
    """A rank's: of each step the gradients and parameters by name."""
    lines = []
    for number, each in enumerate(steps):
        gradients, after = ({name: pair[at] for name, pair in each.items()} for at in range(2))
        found = {"before": after, "gradients": gradients, "after": after}
        lines.append(step(number, {}, dict.fromkeys(each, "hash"), sums=found))
    return trace_of(rank, *lines)


def parting(one: list[RankTrace], other: list[RankTrace], tolerance: Any = None) -> Parting:
    """The first difference, which there is."""
    found = first_beyond(one, other, tolerance)
    assert isinstance(found, Parting), found
    return found


W = sums(3.0, 4.0)


def test_shards_are_one_value_and_what_ranks_hold_alike_counts_once() -> None:
    one = [trace(0, {"w": (sums(1.0, 2.0), W)})]
    parts = [sums(1.0, 0.0), sums(0.0, 2.0)]
    for part in parts:
        part[1] = 1.0
    whole = [sums(3.0, 0.0), sums(0.0, 4.0)]
    for part in whole:
        part[1] = 1.0
    four = [trace(at, {f"w@{at // 2}": (parts[at // 2], whole[at // 2])}) for at in range(4)]
    assert first_beyond(one, four, None) == (
        "no difference beyond tolerance; parameters compared: 1, steps: 1"
    )


def test_a_factor_of_all_gradients_is_said_to_be_one() -> None:
    plain = {"w": (sums(1.0, 2.0), W), "v": (sums(2.0, 1.0), W)}
    wrong = {"w": (sums(2.0, 4.0), W), "v": (sums(4.0, 2.0), W)}
    found = parting([trace(0, plain, plain)], [trace(at, plain, wrong) for at in range(2)])
    assert (found.step, found.ranks, found.place) == (1, [0, 1], "train.py:90 f")
    assert found.sentence.endswith(
        "and 1 of 1 others differ: all are 2 times those of the first run"
    )
    turned = parting([trace(at, wrong) for at in range(2)], [trace(0, plain)])
    assert turned.sentence.endswith("all are 2 times those of the second run")


def test_a_rank_of_its_own_is_named() -> None:
    plain, wrong = {"w": (sums(1.0, 2.0), W)}, {"w": (sums(1.0, 2.1), W)}
    found = parting([trace(0, plain)], [trace(at, wrong if at == 2 else plain) for at in range(4)])
    assert found.ranks == [2]


def test_the_tolerance_is_given_or_measured() -> None:
    plain, close = {"w": (sums(1.0, 2.0), W)}, {"w": (sums(1.0, 2.004), W)}
    one, two = [trace(0, plain)], [trace(at, close) for at in range(2)]
    assert parting(one, two).step == 0
    assert parting(one, two, 0.0001).step == 0
    assert isinstance(first_beyond(one, two, 0.01), str)
    noisy = [trace(0, {"w": (sums(1.0, 2.002), W)})]
    assert isinstance(first_beyond(one, two, noisy), str)
    assert parting(one, two, one).step == 0


def test_a_gradient_that_is_only_rounding_is_no_difference() -> None:
    """As of the bias of attention's keys: Adam makes steps of it, which have no effect."""
    steps = [
        {"w": (sums(1.0, 2.0), W), "bias": (sums(1e-9 * sign, 1e-9), sums(1.0 + sign / 10, 1.0))}
        for sign in (1, -1)
    ]
    found = first_beyond([trace(0, steps[0])], [trace(at, steps[1]) for at in range(2)], None)
    assert isinstance(found, str), found


def test_runs_without_sums_cannot_be_compared() -> None:
    with pytest.raises(DapMuxError, match="no parameter in common whose values are recorded"):
        first_beyond([trace(0, {"w": ([], [])})], [trace(0, {"w": ([], [])})], 0.1)
