"""An expression in the function that the main thread is in, asked from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from dap_mux.rank.injected.waiting_frames import value_in_frame

FACTOR = 3


def asked(expression: str) -> list[str]:
    """What another thread is told while the main one waits for it, here."""
    shard, step = "shard-2", 41
    assert shard
    assert step
    told: list[str] = []

    def ask() -> None:
        try:
            told.append(value_in_frame(expression))
        except Exception as error:  # noqa: BLE001  (is compared)
            told.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return told


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("shard", "str\n'shard-2'"),
        ("step * FACTOR", "int\n123"),
        (" [step + each for each in range(2)]", "list\n[41, 42]"),
        ("(lambda shard: shard)(7)", "int\n7"),
        ("(lambda: step)()", "int\n41"),
        ("outer", "int\n7"),
        ("nowhere", "NameError: name 'nowhere' is not defined"),
        ("step / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_names_of_the_innermost_function_that_knows_them(expression: str, told: str) -> None:
    outer = 7
    assert outer
    assert asked(expression) == [told]


def test_a_long_value_is_cut() -> None:
    (told,) = asked("shard * 100000")
    assert len(told) == 65536 + len("str\n")


def test_the_names_of_the_whole_expression_are_of_one_function() -> None:
    step_of_the_caller = 1
    both: Callable[[], list[Any]] = lambda: asked("step_of_the_caller + step")  # noqa: E731
    assert step_of_the_caller
    assert both() == ["NameError: name 'step' is not defined"]
