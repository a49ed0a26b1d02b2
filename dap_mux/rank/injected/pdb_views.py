"""What pdb's commands print in a stopped rank, in pdb's own layout.

Each function is called by an `evaluate` in a frame, which pydevd holds in a variable (a private
part of it) further up the stack; so `u`, `d` and post-mortem stops are right.
"""

from __future__ import annotations

import dis
import inspect
import linecache
import pprint
import sys
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from types import FrameType


def arguments() -> str:
    """`a`: the arguments of the frame's function, and their values."""
    frame = _frame()
    code, values = frame.f_code, frame.f_locals
    varargs, varkwargs = bool(code.co_flags & 4), bool(code.co_flags & 8)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + varargs + varkwargs]
    shown = {name: repr(values[name]) if name in values else "*** undefined ***" for name in names}
    return "\n".join(f"{name} = {value}" for name, value in shown.items())


def long_list(current: int) -> str:
    """`ll`: all lines of the frame's function, or of its module."""
    lines, first = inspect.getsourcelines(_frame())
    return _numbered(lines, max(first, 1), current)


def list_lines(first: int, last: int, current: int) -> str:
    """`l`: lines of the frame's file; what lies beyond its ends is left out."""
    frame = _frame()
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    return _numbered(lines[first - 1 : last], first, current)


def line_text(line: int) -> str:
    """One line of the frame's file, without the white space around it."""
    frame = _frame()
    return linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()


def lines_from(first: int) -> str:
    """The numbers of the lines with code from `first` on in the frame's function."""
    numbers = {line for _, line in dis.findlinestarts(_frame().f_code)}
    # Some instructions of newer Pythons have no line, which older type stubs do not know.
    return " ".join(str(line) for line in sorted(filter(None, numbers)) if line >= first)


def pp(value: Any) -> str:
    """`pp`: a value, laid out."""
    return pprint.pformat(value)


def source(value: Any) -> str:
    """`source`: the lines that define a function, a class or a module."""
    lines, first = inspect.getsourcelines(value)
    return _numbered(lines, max(first, 1), 0)


def whatis(value: Any) -> str:
    """`whatis`: what kind of thing a value is."""
    if hasattr(value, "__func__"):
        return f"Method {value.__name__}"
    if hasattr(value, "__code__"):
        return f"Function {value.__name__}"
    if isinstance(value, type):
        return f"Class {value.__module__}.{value.__qualname__}"
    return str(type(value))


def _frame() -> FrameType:
    for frame, _ in walk_stack(sys._getframe()):  # noqa: SLF001
        if frame.f_code.co_name == "evaluate_expression":
            found: Any = frame.f_locals.get("frame")
            if hasattr(found, "f_code"):
                return found  # type: ignore[no-any-return]
    raise LookupError("debugpy does not say which frame this is for")


def _numbered(lines: list[str], first: int, current: int) -> str:
    """Lines with their numbers; an arrow at the current one."""
    return "\n".join(
        f"{number!s:>3}{' ->' if number == current else ''}\t{line.rstrip()}"
        for number, line in enumerate(lines, first)
    )
