"""The judge of a soak: it finds what leaks, and lets pass what only goes up and down."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.support.soak.gauges import (
    AT_REST,
    BASELINE,
    BASELINE_BOUNDS,
    MEANWHILE,
    Sample,
    grown,
    not_back,
)

STEADY: Sample = {
    "rss": 50_000,
    "objects": 55_000,
    "files": 8,
    "threads": 2,
    "tasks": 1,
    "handles": 0,
    "deadlines": 0,
    "timers": 0,
    "links": 0,
    "clients": 0,
    "errors": 0,
}
BUSY: Sample = {**STEADY, "files": 80, "tasks": 5, "handles": 900, "deadlines": 70, "timers": 70}


def series(base: Sample, change: Callable[[int], Sample], count: int = 30) -> list[Sample]:
    return [{**base, **change(number)} for number in range(count)]


def test_what_is_steady_passes() -> None:
    assert grown(series(STEADY, lambda _: {}), AT_REST) == []
    assert grown(series(BUSY, lambda _: {}), MEANWHILE) == []


def test_what_goes_up_and_down_passes() -> None:
    chance = Random(1)
    noisy = series(
        BUSY,
        lambda _: {"handles": chance.randrange(2_000), "rss": 50_000 + chance.randrange(9_000)},
        count=100,
    )
    assert grown(noisy, MEANWHILE) == []


@pytest.mark.parametrize("gauge", AT_REST)
def test_a_leak_of_each_kind_is_found_at_rest(gauge: str) -> None:
    """One at each client that comes: a tenth of what there is, or one."""
    leak = max(STEADY[gauge] / 10, 1.0)
    leaking = series(STEADY, lambda number: {gauge: STEADY[gauge] + leak * number})
    (complaint,) = grown(leaking, AT_REST)
    assert complaint.startswith(f"{gauge} has grown from ")


@pytest.mark.parametrize("gauge", MEANWHILE)
def test_a_leak_of_each_kind_is_found_meanwhile(gauge: str) -> None:
    leak = max(BUSY[gauge] / 10, 10.0)
    leaking = series(BUSY, lambda number: {gauge: BUSY[gauge] + leak * number}, count=60)
    (complaint,) = grown(leaking, MEANWHILE)
    assert complaint.startswith(f"{gauge} has grown from ")


@pytest.mark.parametrize("gauge", BASELINE)
def test_what_is_left_of_somebody_is_found(gauge: str) -> None:
    assert not_back(STEADY, STEADY, BASELINE_BOUNDS) == []
    left = {**STEADY, gauge: STEADY[gauge] + 1}
    (complaint,) = not_back(STEADY, left, BASELINE_BOUNDS)
    assert complaint.startswith(f"{gauge} was ")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_samples_show_nothing(count: int) -> None:
    (complaint,) = grown(series(STEADY, lambda _: {}, count), AT_REST)
    assert complaint == f"{count} samples are too few to judge"
