"""The first line of a program: where a console wants ranks to stop before anything has happened."""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def first_stops(command: tuple[str, ...]) -> dict[str, int]:
    """Return the file that a command runs and its first line with code; {} where that is unclear.

    `command` is a script and its arguments, or `-m`, a module and its.
    """
    path = _module_file(command[1]) if command[0] == "-m" else Path(command[0]).absolute()
    line = _first_line(path) if path else 0
    return {str(path): line} if line else {}


def launched_program(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program that a launcher is told to run, as `first_stops` takes it; () if unclear.

    That is the first `.py` file, or else the last `-m` (`python -m torch.distributed.run -m pkg`).
    """
    scripts = [word for word in words[1:] if word.endswith(".py") and Path(word).is_file()]
    if scripts:
        return (scripts[0],)
    places = [place for place, word in enumerate(words[:-1]) if word == "-m"]
    return words[places[-1] : places[-1] + 2] if places else ()


def _module_file(name: str) -> Path | None:
    """Look where Python will, without importing what it would import on the way."""
    inside = Path(*name.split("."))
    for folder in ("", *sys.path):
        for candidate in (inside.with_suffix(".py"), inside / "__main__.py"):
            path = Path(folder).absolute() / candidate
            if path.is_file():
                return path
    return None


def _first_line(path: Path) -> int:
    """Return the first line that runs: a docstring and `from __future__` do not stop anybody."""
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
