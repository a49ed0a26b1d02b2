"""What pdb's commands print of a frame; called as debugpy calls an expression in it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from dap_mux.pure.remote import call
from dap_mux.rank.injected import pdb_views, source_of

SOURCE = source_of("pdb_views")
HERE = __file__


def train(step: int, /, *rest: str, lr: float = 0.1, **more: object) -> FrameType:
    loss = step / 2
    if loss < 0:
        del step
    return sys._getframe()  # comment


FIRST = inspect.getsourcelines(train)[1]


def evaluate_expression(frame: FrameType, text: str) -> Any:
    """pydevd's function of this name has the frame in a variable of this name."""
    return eval(text, frame.f_globals, frame.f_locals)


def view(frame: FrameType, function: str, *arguments: object) -> Any:
    return evaluate_expression(frame, call(SOURCE, function, *map(str, arguments)))


def test_arguments() -> None:
    told = view(train(3, "a", deep=True), "arguments")
    assert told.splitlines() == ["step = 3", "lr = 0.1", "rest = ('a',)", "more = {'deep': True}"]


def test_an_argument_that_the_function_has_deleted() -> None:
    assert view(train(-1), "arguments").startswith("step = *** undefined ***\n")


def test_lines() -> None:
    frame = train(3)
    told = view(frame, "long_list", FIRST + 1).splitlines()
    assert len(told) == 5
    assert told[0].split("\t") == [
        f"{FIRST:3}",
        "def train(step: int, /, *rest: str, lr: float = 0.1, **more: object) -> FrameType:",
    ]
    assert told[1] == f"{FIRST + 1:3} ->\t    loss = step / 2"
    some = view(frame, "list_lines", FIRST + 1, FIRST + 2, FIRST + 1)
    assert some.splitlines() == told[1:3]
    assert view(frame, "list_lines", 10_000, 10_010, 1) == ""
    assert view(frame, "line_text", FIRST + 1) == "loss = step / 2"


def test_lines_with_code() -> None:
    told = view(train(3), "lines_from", FIRST + 1)
    assert told.split() == [str(FIRST + line) for line in (1, 2, 3, 4)]


def test_source() -> None:
    told = view(train(3), "source", "(train  # the function\n)")
    assert told.splitlines()[4] == f"{FIRST + 4:3}\t    return sys._getframe()  # comment"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (train, "Function train"),
        (inspect.signature(train).replace, "Method replace"),
        (inspect.Signature, "Class inspect.Signature"),
        (3, "<class 'int'>"),
    ],
)
def test_what_a_value_is(value: object, text: str) -> None:
    assert eval(call(SOURCE, "whatis", "value"), {"value": value}) == text


def test_a_long_value_is_laid_out() -> None:
    assert eval(call(SOURCE, "pp", "['x' * 60] * 2")).count("\n") == 1


@pytest.mark.parametrize("view", [pdb_views.arguments, lambda: pdb_views.line_text(1)])
def test_without_a_frame(view: Callable[[], str]) -> None:
    with pytest.raises(LookupError):
        view()
