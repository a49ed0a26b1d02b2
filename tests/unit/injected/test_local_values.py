"""The values that a rank tells of its variables, by code that is sent and kept there."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pytest

from dap_mux.pure.remote import PYTHON, Bundle
from dap_mux.rank.injected import source_of

pytestmark = pytest.mark.usefixtures("memory")
MODULES: Final = ("local_values", "tensor_summary")
BUNDLE: Final = Bundle("local_values", {name: source_of(name) for name in MODULES})


class Evil:
    """An object of the program's, which must not be touched."""

    @property
    def shape(self) -> Any:
        raise SystemExit

    def __repr__(self) -> str:
        raise SystemExit


class EvilText(str):
    """A text of the program's own type."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise SystemExit


class EvilArray(np.ndarray):  # type: ignore[misc]
    """An array of the program's own type."""

    @property
    def dtype(self) -> Any:
        raise SystemExit


def told(*, bring: bool = True, **values: Any) -> Any:
    """Evaluate as debugpy does in a frame: its variables are globals."""
    value = f"own['local_values'](own['sent'], {[*values]!r}, {PYTHON}.globals())"
    return json.loads(eval(BUNDLE.bring(value) if bring else BUNDLE.ask(value), values))


def test_simple_values_are_texts() -> None:
    found = told(count=3, loss=0.5, flag=True, name="a'b", none=None, odd=float("nan"))
    texts = ["3", "0.5", "True", '"a\'b"', "None", "nan"]
    assert found == dict(zip(found, ([text, None] for text in texts), strict=True))
    assert list(found) == ["count", "loss", "flag", "name", "none", "odd"]


def test_arrays_have_norms_and_numbers_are_themselves() -> None:
    found = told(w=np.array([3.0, 4.0]), bad=np.array([np.nan, 1.0]), one=np.float32(0.1))
    assert found["w"] == ["ndarray[2] float64 · norm 5 · nan 0 · inf 0", "5"]
    assert found["bad"][1] == "nan"
    assert found["one"] == ["0.1", None]


def test_what_is_the_programs_own_is_never_touched() -> None:
    own = np.zeros(2).view(EvilArray)
    assert told(thing=Evil(), text=EvilText("x"), array=own, many=[1], table={"a": 1}, n=1) == {
        "n": ["1", None]
    }


def test_what_is_large_is_short_or_left_out() -> None:
    """A norm of a large array would keep the next step waiting."""
    found = told(text="x" * 1000, number=1 << 5000, array=np.zeros(1 << 23, "int8"))
    assert found == {"text": [f"'{'x' * 100}' of 1000", None]}


def test_the_code_is_kept() -> None:
    assert told(bring=False, n=1) == {"lacks": "bytecode"}
    assert told(n=1) == told(bring=False, n=1) == {"n": ["1", None]}
