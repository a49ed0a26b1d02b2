"""Where a rank's failure is said to be: in the program, not deep in a library."""

from __future__ import annotations

import json
from inspect import currentframe
from pathlib import Path
from types import FrameType, TracebackType

from dap_mux.rank.post_mortem import _name_and_place


def failure_of(text: str) -> tuple[BaseException, TracebackType]:
    """Fail in the standard library, or here for a text that is sound."""
    try:
        json.loads(text)
        raise KeyError(text)
    except (KeyError, ValueError) as error:
        assert error.__traceback__ is not None
        return error, error.__traceback__


def line() -> int:
    """The number of the line after `json.loads` in `failure_of`."""
    frame = currentframe()
    assert isinstance(frame, FrameType)
    source = Path(frame.f_code.co_filename).read_text("utf-8").splitlines()
    return next(n for n, one in enumerate(source, 1) if one.strip() == "json.loads(text)") + 1


def test_a_failure_in_a_library_is_told_where_the_program_called_it() -> None:
    name = Path(__file__).name
    assert _name_and_place(*failure_of("{")) == f"JSONDecodeError at {name}:{line() - 1}"
    assert _name_and_place(*failure_of("{}")) == f"KeyError at {name}:{line()}"
