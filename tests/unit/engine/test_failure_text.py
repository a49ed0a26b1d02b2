"""Failures of expressions, as debugpy tells them and as they are shown."""

from __future__ import annotations

from textwrap import dedent
from typing import Final

import pytest

from dap_mux.engine.values.inspect import without_debugger_frames

TITLE: Final = "Traceback (most recent call last):\n"
PYDEVD: Final = """\
  File "/site-packages/debugpy/_vendored/pydevd/_pydevd_bundle/pydevd_vars.py", line 9, in _compile
    return compile(expression_to_evaluate, "<string>", "exec", _ASYNC_COMPILE_FLAGS)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
WINDOWS: Final = PYDEVD.replace("/", "\\")
SYNTAX: Final = """\
  File "<string>", line 1
    loss +
          ^
SyntaxError: invalid syntax
"""
RAISED: Final = dedent("""\
      File "<string>", line 1, in <module>
      File "/job/train.py", line 3, in loss
        return 1 / 0
               ~~^~~
    ZeroDivisionError: division by zero
    """)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (TITLE + 3 * PYDEVD + SYNTAX, SYNTAX),
        (TITLE + 2 * WINDOWS + SYNTAX, SYNTAX),
        (TITLE + RAISED, TITLE + RAISED),
        (TITLE + PYDEVD + RAISED, TITLE + RAISED),
        ("NameError: name 'lossy' is not defined", "NameError: name 'lossy' is not defined"),
        ("", ""),
    ],
)
def test_frames_of_the_debugger_are_left_out(told: str, shown: str) -> None:
    assert without_debugger_frames(told) == shown
