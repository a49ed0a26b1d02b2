"""Find the first line of a program, where ranks stop for a console before anything runs."""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def entry_line(command: tuple[str, ...]) -> dict[str, int]:
    """Return the file that a command runs and its first line with code; {} if unknown.

    `command` is a script and its arguments, or `-m`, a module and its arguments.
    """
    path = _module_file(command[1]) if command[0] == "-m" else Path(command[0]).absolute()
    line = _first_line(path) if path else 0
    return {str(path): line} if line else {}


def launched_program(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program that a launcher will run, for `entry_line`; () if unknown.

    That is the first `.py` file, or else the last `-m` (`python -m torch.distributed.run -m pkg`).
    """
    scripts = [each for each in command[1:] if each.endswith(".py") and Path(each).is_file()]
    if scripts:
        return (scripts[0],)
    options = [index for index, each in enumerate(command[:-1]) if each == "-m"]
    return command[options[-1] : options[-1] + 2] if options else ()


def _module_file(name: str) -> Path | None:
    """Search as Python does, but without importing parent packages."""
    relative = Path(*name.split("."))
    for folder in ("", *sys.path):
        for candidate in (relative.with_suffix(".py"), relative / "__main__.py"):
            path = Path(folder).absolute() / candidate
            if path.is_file():
                return path
    return None


def _first_line(path: Path) -> int:
    """Return the first line that can stop: a docstring and `from __future__` cannot."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return 0
    for statement in body:
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (text or future):
            decorators = getattr(statement, "decorator_list", [])
            return int((decorators or [statement])[0].lineno)
    return 0
