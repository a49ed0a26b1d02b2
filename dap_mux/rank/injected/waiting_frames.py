"""Evaluates in a frame of the main thread, which runs on meanwhile: in C, most likely.

Only the frame in which all names of the expression are known has its variables read.
"""

from __future__ import annotations

import ast
import builtins
import gc
import sys
import sysconfig
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from types import FrameType

LIBRARIES = ("site-packages", "dist-packages", "pydevd", "debugpy", "<builtin dap_mux>")
OPTIMIZED = 1  # CO_OPTIMIZED: its variables are not those of a dict
MAX_CHARS = 65536  # where debugpy cuts values of a frame
FILE_NAME = "<string>"


def value_in_frame(expression: str) -> str:
    """Return the name of the value's type, a newline and its `repr`.

    In the innermost function of the program's own that knows all names. Raises what it raises.
    """
    tree = ast.parse(expression.strip(), FILE_NAME, "eval")
    variables = _variables(_names(tree))
    value = eval(compile(tree, FILE_NAME, "eval"), variables)  # noqa: S307  (the user's own)
    return f"{type(value).__name__}\n{repr(value)[:MAX_CHARS]}"


def _names(tree: ast.AST) -> set[str]:
    """Return the names that an expression takes from around it."""
    nodes = [*ast.walk(tree)]
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    return {node.id for node in names} - bound - set(vars(builtins))


def _variables(names: set[str]) -> dict[str, Any]:
    enabled = gc.isenabled()
    gc.disable()  # a collection may let the frame's thread run on, which CPython 3.11 cannot stand
    try:
        for frame in _frames():
            code = frame.f_code
            own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
            if not code.co_flags & OPTIMIZED:
                own.update(frame.f_locals)
            if names <= {*own, *frame.f_globals}:
                return {**frame.f_globals, **(frame.f_locals if names & own else {})}
    finally:
        if enabled:
            gc.enable()
    raise NameError(f"name {min(names)!r} is not defined")


def _frames() -> list[FrameType]:
    """Return the frames of the program's own code in the main thread, the innermost first."""
    main = threading.main_thread().ident
    frame = sys._current_frames().get(main) if main is not None else None  # noqa: SLF001
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")}
    library = tuple(folder for folder in folders if folder)
    found: list[FrameType] = []
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(("<frozen", *library)) and not any(one in path for one in LIBRARIES):
            found.append(frame)
        frame = frame.f_back
    return found
