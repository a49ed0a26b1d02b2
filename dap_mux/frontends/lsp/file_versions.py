"""The text of an open file: its earlier versions, and the expression under the cursor."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from dap_mux.pure.rank_values import is_lookup
from dap_mux.system.user_files import open_regular

# Where the lines of a text are after it was edited.

_LINE_END: Final = re.compile("\r\n|\n|\r")  # as Python and LSP count lines; splitlines has more
_MAX_COMPARED: Final = 400  # pairs of lines in one changed place
_SIMILAR: Final = 0.6


def line_after(line: int, text: str, now: str) -> int | None:
    """Return the number that a line of a text has in another, both from 1; None if it is gone."""
    if text == now:
        return line
    lines = _positions(text, now)
    found = lines[line - 1] if 1 <= line <= len(lines) else None
    return None if found is None else found + 1


@lru_cache(maxsize=16)
def _positions(text: str, text_now: str) -> list[int | None]:
    """Return the index in the other of each line; edits are mostly in one place: compare less."""
    before, now = _LINE_END.split(text), _LINE_END.split(text_now)
    least = min(len(before), len(now))
    head = next((i for i in range(least) if before[i] != now[i]), least)
    tail = next((i for i in range(least - head) if before[-1 - i] != now[-1 - i]), least - head)
    moved = len(now) - len(before)
    middle = _changed(before[head : len(before) - tail], now[head : len(now) - tail])
    found: list[int | None] = list(range(head))
    found += [None if index is None else index + head for index in middle]
    return [*found, *(index + moved for index in range(len(before) - tail, len(before)))]


def _changed(before: Sequence[str], now: Sequence[str]) -> list[int | None]:
    found: list[int | None] = [None] * len(before)
    for kind, i, last_i, j, last_j in SequenceMatcher(None, before, now).get_opcodes():
        if kind == "equal" or (kind == "replace" and last_i - i == last_j - j):
            found[i:last_i] = range(j, last_j)
        elif kind == "replace" and (last_i - i) * (last_j - j) <= _MAX_COMPARED:
            for one, other in _similar(before[i:last_i], now[j:last_j]):
                found[i + one] = j + other
    return found


def _similar(before: Sequence[str], now: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of lines that are much the same, in their order."""
    first = 0
    for index, line in enumerate(before):
        ratios = [
            SequenceMatcher(None, line.strip(), other.strip()).ratio() for other in now[first:]
        ]
        best = max(ratios, default=0.0)
        if best >= _SIMILAR:
            chosen = first + ratios.index(best)
            yield index, chosen
            first = chosen + 1


MAX_VERSIONS: Final = 50


class FileVersions:
    """The texts of a file since it was opened in the editor.

    `opened`: the text with which it was opened, for a file that is not on this machine.
    """

    def __init__(self, path: str, opened: str) -> None:
        self._path = Path(path)
        self._stamp: tuple[int, int] | None = None
        self._versions: list[tuple[str, float]] = []  # with the times since when they were there
        self.look()
        if not self._versions:
            self._versions.append((opened, 0.0))

    def look(self) -> None:
        """Read the file if it has changed."""
        try:
            status = self._path.stat()
            stamp = status.st_mtime_ns, status.st_size
            if stamp == self._stamp:
                return
            # As the editor has it: line ends are not translated, and the mark is left out.
            with open_regular(self._path) as file:
                text = file.read().decode("utf-8-sig")
        except (OSError, ValueError):
            return
        self._stamp = stamp
        last, at = self._versions[-1] if self._versions else (None, 0.0)
        if text != last:
            newer = last is None or status.st_mtime > at
            self._versions.append((text, status.st_mtime if newer else time.time()))
            del self._versions[1:-MAX_VERSIONS]  # ranks may have run since the first one

    def line_now(self, line: int, started: float, now: str) -> int | None:
        """Return where a line is in the editor's text that a rank runs which has then started."""
        known = [text for text, since in self._versions if since <= started]
        return line_after(line, known[-1] if known else self._versions[0][0], now)


# The expression under the cursor and the function around it; calls are never evaluated.

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Value: TypeAlias = ast.expr | ast.arg


@dataclass(frozen=True)
class Expression:
    """An expression and its location.

    Lines are 1-based, columns 0-based in bytes of UTF-8, ends exclusive, as `ast` counts.
    """

    text: str
    line: int
    column: int
    end_line: int
    end_column: int


def parsed(source: str) -> ast.Module | None:
    """Parse a program; None if it has a syntax error, as while it is being typed."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def expression_at(tree: ast.Module, line: int, column: int) -> Expression | None:
    """Return the smallest expression with a value at a position, if it is safe to evaluate.

    The value of a called function is not useful. Within `batch.unit[0]` the result is `batch`,
    `batch.unit` or all of it, depending on the position.
    """
    pointed = (_pointed_at(node, line, column) for node in ast.walk(tree))
    node = min((one for one in pointed if one is not None), key=_size, default=None)
    called = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
    if node is None or id(node) in called or not (isinstance(node, ast.arg) or is_lookup(node)):
        return None
    text = node.arg if isinstance(node, ast.arg) else ast.unparse(node)
    return Expression(text, node.lineno, node.col_offset, _end_line(node), _end_column(node))


def function_at(tree: ast.Module, line: int) -> Function | None:
    """Return the innermost function around a line; None at module level."""
    functions = (each for each in ast.walk(tree) if isinstance(each, Function))
    around = [each for each in functions if each.lineno <= line <= _end_line(each)]
    return max(around, key=lambda each: each.lineno, default=None)


def _pointed_at(node: ast.AST, line: int, column: int) -> Value | None:
    """Return the node if the position is in its own part, not in a child."""
    if isinstance(node, ast.Name | ast.arg):
        return node if _within(node, line, column) else None
    if isinstance(node, ast.Attribute | ast.Subscript):
        inside = _within(node, line, column) and not _within(node.value, line, column)
        return node if inside else None
    return None


def _within(node: Value, line: int, column: int) -> bool:
    begin, end = (node.lineno, node.col_offset), (_end_line(node), _end_column(node))
    return begin <= (line, column) <= end


def _size(node: Value) -> tuple[int, int]:
    return _end_line(node) - node.lineno, _end_column(node) - node.col_offset


def _end_line(node: Value | Function) -> int:
    if isinstance(node, ast.arg):
        return node.lineno
    return node.end_lineno or node.lineno


def _end_column(node: Value) -> int:
    if isinstance(node, ast.arg):  # without its annotation
        return node.col_offset + len(node.arg.encode())
    return node.end_col_offset or node.col_offset
