"""The source of what frames run, read once; nothing is imported for it."""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Sequence
    from types import CodeType, FrameType

    Span = tuple[int, int, int, int]  # first and last line, first and last column in UTF-8

MAX_LINES = 5000  # of a function or module; longer ones are not parsed
ENTERS = {dis.opmap[name] for name in ("BEFORE_WITH", "SETUP_WITH") if name in dis.opmap}
HEADS = ("def ", "async def ", "class ")  # behind the decorators


def span(frame: FrameType) -> Span | None:
    """Return where the instruction that a frame is at stands in the source; None before 3.11.

    At the beginning of a `with` that is where its value stands.
    """
    code, offset = frame.f_code, frame.f_lasti
    positions: Any = getattr(code, "co_positions", None)
    if positions is None or offset < 0:
        return None
    if is_entering(frame) and sys.version_info < (3, 13):  # it has the place of all the statement
        offset -= 2
    found: Any = next(islice(positions(), offset // 2, None), None)
    return None if found is None or None in found else found


def is_entering(frame: FrameType) -> bool:
    """Whether it is at the beginning of a `with`."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in ENTERS


def text(code: CodeType, where: Span) -> str:
    """Return what stands there, "" without the source."""
    first, last, start, end = where
    lines = [line.encode() for line in linecache.getlines(code.co_filename)[first - 1 : last]]
    if len(lines) != last - first + 1:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode("utf-8", "replace")


def line(code: CodeType, number: int) -> str:
    """Return one line, "" without the source."""
    return "".join(linecache.getlines(code.co_filename)[number - 1 : number]).strip()


def expression(source: str) -> ast.expr | None:
    """Return the expression that this is, if it is one."""
    try:
        return ast.parse(f"({source}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None


class Trees:
    """The syntax of functions, each parsed once."""

    def __init__(self) -> None:
        self._known: dict[CodeType, ast.Module | None] = {}
        self._around: dict[tuple[CodeType, int], list[ast.AST]] = {}

    def around(self, code: CodeType, number: int) -> list[ast.AST]:
        """Return what is around a line of a function or module, the outermost first."""
        if code not in self._known:
            self._known[code] = tree(code)
        if (code, number) not in self._around:
            found = self._around[code, number] = []
            nodes: list[ast.AST] = [*getattr(self._known[code], "body", ())]
            for node in nodes:  # which grows
                first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
                if first is None or first <= number <= (last or first):
                    found.append(node)
                    nodes.extend(ast.iter_child_nodes(node))
        return self._around[code, number]


def polls(around: Sequence[ast.AST]) -> bool:
    """Whether the innermost loop of these looks for something until it is there.

    It asks that in its head, or leaves by a `break` or `return` other than for its own numbers.
    """
    loop = next((one for one in reversed(around) if isinstance(one, (ast.For, ast.While))), None)
    if loop is None or (isinstance(loop, ast.While) and _asks(loop.test)):
        return loop is not None
    inside = [*ast.walk(loop)]
    by_numbers = [one for one in inside if isinstance(one, ast.If) and not _asks(one.test)]
    counted = {id(each) for one in by_numbers for each in ast.walk(one)}
    leaves = (one for one in inside if isinstance(one, (ast.Break, ast.Return)))
    return any(id(one) not in counted for one in leaves)


def _asks(test: ast.expr) -> bool:
    asking = (ast.Call, ast.Attribute, ast.Subscript)
    return any(isinstance(each, asking) for each in ast.walk(test))


def tree(code: CodeType) -> ast.Module | None:
    """Parse the source of a function or module, with the lines that it has in its file."""
    lines = linecache.getlines(code.co_filename)
    is_module = code.co_name == "<module>"
    if code.co_name.startswith("<") and not is_module:
        return None  # a lambda or a comprehension: a part of an expression
    first = 0 if is_module else code.co_firstlineno - 1
    block = lines if is_module else lines[first : _end(lines, first)]
    return _parsed(block, first) or (None if is_module else _parsed(lines, 0))


def _parsed(lines: list[str], before: int) -> ast.Module | None:
    if not 0 < len(lines) <= MAX_LINES:
        return None
    indented = lines[0][:1].isspace()
    try:
        parsed = ast.parse("".join(["if 1:\n", *lines] if indented else lines))
    except (SyntaxError, ValueError):
        return None
    return ast.increment_lineno(parsed, before - indented)


def _end(lines: list[str], first: int) -> int:
    """Return where a function or class ends: at the next line that is no deeper than its head."""
    depth = _depth(lines[first]) if first < len(lines) else 0
    past_head = in_body = False
    for number in range(first, len(lines)):
        content = lines[number].strip()
        if not content or content.startswith("#"):
            continue
        if _depth(lines[number]) > depth:
            in_body = past_head
        elif in_body and content[0] not in ")]}":
            return number
        elif content.startswith(HEADS):
            past_head = True
    return len(lines)


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip())
