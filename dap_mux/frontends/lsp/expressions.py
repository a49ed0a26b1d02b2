"""The expression under the cursor and the function around it; calls are never evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dap_mux.pure.rank_values import is_lookup

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


@dataclass(frozen=True)
class ParsedSource:
    """A parsed program."""

    tree: ast.Module
    source: str

    @classmethod
    def read(cls, source: str) -> ParsedSource | None:
        """Parse a program; None if it has a syntax error, as while it is being typed."""
        try:
            return cls(ast.parse(source), source)
        except (SyntaxError, ValueError, RecursionError):
            return None

    def expression_at(self, line: int, column: int) -> Expression | None:
        """Return the smallest expression with a value at a position, if it is safe to evaluate.

        The value of a called function is not useful. Within `batch.unit[0]` the result is `batch`,
        `batch.unit` or all of it, depending on the position.
        """
        pointed = (_pointed_at(node, line, column) for node in ast.walk(self.tree))
        node = min((one for one in pointed if one is not None), key=_size, default=None)
        called = {id(each.func) for each in ast.walk(self.tree) if isinstance(each, ast.Call)}
        if node is None or id(node) in called or not (isinstance(node, ast.arg) or is_lookup(node)):
            return None
        text = node.arg if isinstance(node, ast.arg) else ast.unparse(node)
        return Expression(text, node.lineno, node.col_offset, _end_line(node), _end_column(node))

    def function_at(self, line: int) -> Function | None:
        """Return the innermost function around a line; None at module level."""
        around = [each for each in self._functions() if each.lineno <= line <= _end_line(each)]
        return max(around, key=lambda each: each.lineno, default=None)

    def same_function(self, line: int, other: int) -> bool:
        """Whether two lines belong to the same function."""
        return self.function_at(line) is self.function_at(other)

    def _functions(self) -> Iterator[Function]:
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node


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
