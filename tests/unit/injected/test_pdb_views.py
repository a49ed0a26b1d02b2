"""What pdb's commands print of a frame; called as debugpy calls an expression in it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from dap_mux.engine.pdb.command import PdbExpressions
from dap_mux.rank.injected import pdb_views, source_of

VIEWS = PdbExpressions(source_of("pdb_views"))
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


def test_arguments() -> None:
    frame = train(3, "a", deep=True)
    told = evaluate_expression(frame, VIEWS.arguments())
    assert told.splitlines() == ["step = 3", "lr = 0.1", "rest = ('a',)", "more = {'deep': True}"]


def test_an_argument_that_the_function_has_deleted() -> None:
    assert evaluate_expression(train(-1), VIEWS.arguments()).startswith(
        "step = *** undefined ***\n"
    )


def test_lines() -> None:
    frame = train(3)
    told = evaluate_expression(frame, VIEWS.long_list(FIRST + 1)).splitlines()
    assert len(told) == 5
    assert told[0].split("\t") == [
        f"{FIRST:3}",
        "def train(step: int, /, *rest: str, lr: float = 0.1, **more: object) -> FrameType:",
    ]
    assert told[1] == f"{FIRST + 1:3} ->\t    loss = step / 2"
    some = evaluate_expression(frame, VIEWS.list_lines(FIRST + 1, FIRST + 2, FIRST + 1))
    assert some.splitlines() == told[1:3]
    assert evaluate_expression(frame, VIEWS.list_lines(10_000, 10_010, 1)) == ""
    assert evaluate_expression(frame, VIEWS.line_text(FIRST + 1)) == "loss = step / 2"


def test_lines_with_code() -> None:
    told = evaluate_expression(train(3), VIEWS.lines_from(FIRST + 1))
    assert told.split() == [str(FIRST + line) for line in (1, 2, 3, 4)]


def test_source() -> None:
    told = evaluate_expression(train(3), VIEWS.of_value("source", "train  # the function"))
    assert told.splitlines()[4] == f"{FIRST + 4:3}\t    return sys._getframe()  # comment"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (train, "Function train"),
        (PdbExpressions("").arguments, "Method arguments"),
        (PdbExpressions, "Class dap_mux.engine.pdb.command.PdbExpressions"),
        (3, "<class 'int'>"),
    ],
)
def test_what_a_value_is(value: object, text: str) -> None:
    assert eval(VIEWS.of_value("whatis", "value"), {"value": value}) == text


def test_a_long_value_is_laid_out() -> None:
    assert eval(VIEWS.of_value("pp", "['x' * 60] * 2")).count("\n") == 1


@pytest.mark.parametrize("view", [pdb_views.arguments, lambda: pdb_views.line_text(1)])
def test_without_a_frame(view: Callable[[], str]) -> None:
    with pytest.raises(LookupError):
        view()
