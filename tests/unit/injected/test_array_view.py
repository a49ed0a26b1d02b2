"""The cells of an array, by code that is sent to ranks."""

from __future__ import annotations

import json
from array import array
from base64 import b64decode
from typing import Any, Final

import numpy as np
import pytest

from dap_mux.engine.values.arrays import VALUE
from dap_mux.pure.remote import Bundle
from dap_mux.rank.injected import array_view, source_of

SOURCES: Final = {name: source_of(name) for name in ("array_view", "tensor_summary")}
# On a busy machine a large array takes longer than a user may wait for it.
PATIENT: Final = SOURCES["array_view"].replace(f"\nWITHIN = {array_view.WITHIN} ", "\nWITHIN = 60 ")
pytestmark = pytest.mark.usefixtures("memory")
BUNDLE: Final = Bundle("array_view", {**SOURCES, "array_view": PATIENT})


def told(value: Any, **asked: Any) -> Any:
    """Evaluate as debugpy does in a frame."""
    wanted: dict[str, Any] = {
        "rows": None,
        "columns": None,
        "line": False,
        "at": [],
        "width": 256,
        "cells": True,
    }
    text = f"(lambda value, asked: {BUNDLE.bring(VALUE)})((own\n), { {**wanted, **asked}!r})"
    return json.loads(eval(text, {"own": value}))


def numbers(told: Any, name: str) -> Any:
    """The cells of an answer, as they lie."""
    part = told["part"]
    return np.array(array("f", b64decode(part[name]))).reshape(part["grid"])


def test_a_small_array_is_itself() -> None:
    found = told(np.arange(6.0).reshape(2, 3))
    assert numbers(found, "mean").tolist() == [[0, 1, 2], [3, 4, 5]]
    part = found["part"]
    assert (part["max"], part["nan"]) == ("", "")
    assert part["statistics"] == {
        "min": 0,
        "max": 5,
        "mean": 2.5,
        "nan": 0,
        "inf": 0,
        "count": 6,
    }
    assert sum(part["histogram"]) == 6


@pytest.mark.parametrize(
    ("shape", "rows", "columns", "at"),
    [
        ((700, 513), 0, 1, []),
        ((700, 513), 1, 0, []),
        ((5, 30, 7, 1030), 1, 3, [2, 0, -1, 0]),
        ((3, 400000), 0, 1, []),
        ((2000003, 3), 0, 1, []),
        ((257, 1), 0, 1, []),
    ],
)
def test_cells_are_what_numpy_computes(
    shape: tuple[int, ...], rows: int, columns: int, at: list[int]
) -> None:
    """Whatever is cut into blocks: of each cell the largest, the mean, and how many are NaN."""
    data = np.random.default_rng(1).standard_normal(shape).astype("float32")
    data[tuple(size // 2 for size in shape)] = np.nan
    found = told(data, rows=rows, columns=columns, at=at)
    high, wide = found["part"]["grid"]
    assert max(high, wide) <= 256
    index = [
        slice(None) if axis in (rows, columns) or one < 0 else one
        for axis, one in enumerate(at or [0] * len(shape))
    ]
    kept = [axis for axis, one in enumerate(index) if isinstance(one, slice)]
    inner = [axis for axis in kept if axis not in (rows, columns)]
    order = [kept.index(axis) for axis in (rows, *inner, columns)]
    table = data[tuple(index)].transpose(order)
    tall, across = -(-table.shape[0] // min(256, len(table))), -(-table.shape[-1] // min(256, wide))
    nans = numbers(found, "nan") if found["part"]["nan"] else np.zeros((high, wide))
    best = numbers(found, "max" if found["part"]["max"] else "mean")
    for row in {0, high // 2, high - 1}:
        for column in {0, wide // 2, wide - 1}:
            cell = table[
                row * tall : (row + 1) * tall, ..., column * across : (column + 1) * across
            ]
            assert nans[row, column] == np.isnan(cell).sum()
            assert best[row, column] == np.nanmax(cell)
            assert numbers(found, "mean")[row, column] == pytest.approx(np.nanmean(cell), abs=1e-5)


def test_all_of_an_array_is_one_line() -> None:
    """As each rank has with `$rank`: the other dimensions are reduced, or an index is taken."""
    data = np.arange(24.0).reshape(2, 3, 4)
    assert numbers(told(data, line=True), "max").tolist() == [[20, 21, 22, 23]]
    assert numbers(told(data, line=True, at=[0, 1]), "mean").tolist() == [[4, 5, 6, 7]]
    assert numbers(told(data, line=True, columns=0, width=1), "max").tolist() == [[23]]


def test_what_is_no_number_is_counted() -> None:
    data = np.array([[np.nan, np.nan, 1, np.inf], [np.nan, np.nan, 3, 4]])
    found = told(data)
    assert found["part"]["statistics"] == {
        "min": 1,
        "max": 4,
        "mean": None,
        "nan": 4,
        "inf": 1,
        "count": 8,
    }
    assert np.isnan(numbers(found, "mean")[:, :2]).all()
    assert numbers(found, "nan").tolist() == [[1, 1, 0, 0]] * 2
    nothing = told(np.full((2, 2), np.nan))["part"]
    assert [nothing["statistics"][name] for name in ("min", "max", "mean")] == [None] * 3


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
def test_kinds_of_numbers(dtype: str) -> None:
    assert numbers(told(np.ones((2, 2), dtype)), "mean").tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([1], "list is neither a tensor nor an array"),
        (np.array(["a"]), "has no numbers"),
        (np.zeros((3, 0)), "it has no elements"),
        (np.array([{}], dtype=object), "has no numbers"),
    ],
)
def test_what_has_no_cells(value: Any, problem: str) -> None:
    assert problem in told(value)["problem"]


def test_dimensions_that_it_lacks() -> None:
    data = np.zeros((2, 3))
    assert "no dimension 7" in told(data, rows=7)["problem"]
    assert "the same dimension" in told(data, rows=1, columns=1)["problem"]
    assert "no index 5 of dimension 0" in told(np.zeros((2, 3, 4)), at=[5])["problem"]
    assert numbers(told(np.array(7.0)), "mean").tolist() == [[7]]


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has not been looked at is NaN, and that is told."""
    monkeypatch.setattr(array_view, "WITHIN", -1)
    asked = {"rows": 0, "columns": 1, "line": False, "at": [], "width": 256, "cells": True}
    found = json.loads(array_view.view({}, np.zeros((4, 4)), asked))
    assert found["part"]["complete"] is False
    assert np.isnan(numbers(found, "mean")).all()


def test_the_shape_alone() -> None:
    assert told(np.zeros((2, 3)), cells=False) == {
        "name": "ndarray",
        "shape": [2, 3],
        "dtype": "float64",
        "local": [2, 3],
        "offset": [0, 0],
    }


def test_an_array_of_the_programs_own_type_is_taken_as_one() -> None:
    """Its own indexing is not used: a `matrix` stays two-dimensional when one row is taken."""
    assert numbers(told(np.array([[1.0, 2.0]]).view(np.matrix)), "mean").tolist() == [[1, 2]]


@pytest.mark.parametrize("far", [340268.0, -340268.0])
def test_the_histogram_has_room_for_what_is_not_far_off(far: float) -> None:
    """What is far off is counted beside its ends, also where the sample does not contain it."""
    data = np.random.default_rng(1).standard_normal((1500, 1501)).astype("float32")
    data[7, 9] = far
    part = told(data)["part"]
    low, high = part["ends"]
    assert -8 < low < -4 < 4 < high < 8
    below, *bins, above = part["histogram"]
    assert (below, above) == ((0, 1) if far > 0 else (1, 0))
    assert len([one for one in bins if one]) > 20
