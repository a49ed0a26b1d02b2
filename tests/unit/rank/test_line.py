"""Steps may end where a line is reached, in frames that run already and in later ones."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from dap_mux.rank.comm.line import Line

HERE = __file__.rpartition("/")[2]


def work(times: int) -> int:
    """Count; the line that the tests watch, number `AT`, is marked."""
    done = 0
    for _ in range(times):
        done += 1  # here
    return done


AT = work.__code__.co_firstlineno + 4


@contextmanager
def watched(place: str, reached: Callable[[FrameType], object]) -> Iterator[None]:
    """Watch a line; what traced before does so afterwards."""
    before = sys.gettrace()
    line = Line(place, reached)
    line.begin()
    try:
        yield
    finally:
        line.end()
        sys.settrace(before)


@pytest.mark.parametrize("path", [__file__, f"rank/{HERE}"])
def test_each_time_that_a_line_is_reached_is_told(path: str) -> None:
    seen: list[int] = []

    def reached(frame: FrameType) -> None:
        seen.append(frame.f_locals["done"])

    with watched(f"{path}:{AT}", reached):
        work(3)
        other = threading.Thread(target=work, args=(1,))
        other.start()
        other.join()
    work(2)
    assert seen == [0, 1, 2, 0]


@pytest.mark.parametrize("place", [f"other/{HERE}:{AT}", f"k/{HERE}:{AT}", f"{__file__}:1"])
def test_other_files_of_that_name_and_lines_without_code_are_not(place: str) -> None:
    seen: list[FrameType] = []
    with watched(place, seen.append):
        work(3)
    assert seen == []


def test_a_frame_that_runs_already_is_watched() -> None:
    seen: list[int] = []
    at = sys._getframe().f_lineno + 3
    with watched(f"{__file__}:{at}", lambda frame: seen.append(frame.f_lineno)):
        for _ in range(2):
            work(1)
    assert seen == [at, at]
