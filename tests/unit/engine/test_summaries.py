"""What a rank says of an array; the text that does it is run here as a rank runs it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dap_mux.engine.summaries import summarised


def seen(value: object, text: str = "value") -> Any:
    return eval(summarised(text), {"value": value})


@pytest.mark.parametrize("value", [3, 2.5, "text", None, [1, 2], {"a": 1}, object])
def test_what_is_no_array_is_itself(value: object) -> None:
    assert seen(value) is value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(2.31), "2.31"),
        (np.float32(2.31), "2.31"),
        (np.float16(0.1), "0.1"),
        (np.int64(7), "7"),
        (np.array([[2.5]]), "2.5"),
        (np.float32("nan"), "nan"),
        (np.float32(1e-20), "1e-20"),
        (np.bool_(1), "True"),
        (np.str_("x"), "np.str_('x')"),
    ],
)
def test_one_number_is_shown_as_one(value: Any, text: str) -> None:
    assert repr(seen(value)) == text
    assert type(seen(value)).__name__ == type(value).__name__


def test_an_array_is_a_line() -> None:
    value = np.arange(12, dtype="float32").reshape(3, 4)
    found = seen(value)
    assert repr(found) == "ndarray[3, 4] float32 · norm 22.4944438 · nan 0 · inf 0"
    assert (found.shape, found.dtype, found.norm) == ((3, 4), "float32", pytest.approx(506**0.5))


def test_nan_and_inf_are_counted() -> None:
    found = seen(np.array([1.0, np.nan, np.inf, -np.inf]))
    assert (found.nan, found.inf) == (1, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "complex64", "bool"])
def test_every_kind_of_number(dtype: str) -> None:
    value = np.ones((2, 5000), dtype)
    assert seen(value).norm == pytest.approx(100)


def test_half_floats_do_not_overflow_and_views_are_read_as_they_lie() -> None:
    value = np.full((300, 300), 6e4, "float16")[::2, ::3]
    assert seen(value).norm == pytest.approx(float(value[0, 0]) * 15000**0.5)


def test_what_cannot_be_counted_has_its_shape() -> None:
    assert repr(seen(np.array(["a", "b"]))) == "ndarray[2] <U1"
    assert repr(seen(np.zeros((0, 3)))) == "ndarray[0, 3] float64 · norm 0 · nan 0 · inf 0"


def test_the_users_text_may_be_anything_that_has_a_value() -> None:
    assert seen(np.ones(3), "value[0] + 1  # and a comment").__repr__() == "2.0"
    assert seen(4, "value, 5") == (4, 5)
    assert seen(4, "[x for x in range(value)]") == [0, 1, 2, 3]
    assert summarised("x = 3") == "x = 3"
    assert "$" not in summarised("value")
    assert "inside" in summarised("value + $rank")


class FakeStream:
    """A GPU that is busy for ever."""

    def query(self) -> bool:
        return False


class FakeDevice:
    type = "cuda"

    def __str__(self) -> str:
        return "cuda:1"


class FakeTensor:
    """What is asked of a tensor before its data; its data must not be touched."""

    shape = (2, 3)
    dtype = "torch.bfloat16"

    device = FakeDevice()

    def detach(self) -> FakeTensor:
        return self

    def numel(self) -> int:
        raise AssertionError("touched")


def test_a_busy_gpu_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ModuleType("torch")
    torch.Tensor = FakeTensor  # type: ignore[attr-defined]
    torch.no_grad = np.errstate  # type: ignore[attr-defined]
    torch.cuda = ModuleType("cuda")  # type: ignore[attr-defined]
    torch.cuda.current_stream = lambda device: FakeStream()
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = seen(FakeTensor())
    assert repr(found) == "FakeTensor[2, 3] bfloat16 cuda:1 · not computed yet"
