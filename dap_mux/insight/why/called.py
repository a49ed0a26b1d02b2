"""The call that a thread is in, by its line in the source alone: nothing runs in the process.

`injected/evidence/waiting_calls.py` knows more in a rank: which instruction it is at, and what
names mean. Here a name means what the file imports or assigns to it, else what its printed value
says.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dap_mux.insight.why.evidence import Call
from dap_mux.insight.why.waits import COMMUNICATION, plain

# Tells files of libraries from the program's own, by their paths alone.

_LIBRARY: Final = re.compile(r"[/\\]lib(?:64)?[/\\]python\d|site-packages|dist-packages|^<frozen")


def is_library(path: str) -> bool:
    """Whether a file is the standard library's or an installed package's."""
    return _LIBRARY.search(path) is not None


MAX_TEXT: Final = 200
MAX_STEPS: Final = 8
"""How often a name may be followed to the one that it was assigned from."""
MAX_NUMBER: Final = 1 << 40
_OBJECT: Final = re.compile(r"<([\w.]+) at 0x[0-9a-f]+>")
_NUMBER: Final = re.compile(r"-?\d{1,12}", re.ASCII)
_OPERATORS: Final[Mapping[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.BitXor: operator.xor,
}


class Source:
    """A file's calls, imports and assignments, read once."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.calls: dict[int, list[ast.Call]] = {}
        self.imports: dict[str, str] = {}
        self.assigned: dict[str, ast.expr] = {}
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self.calls.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.Import):
            for each in node.names:
                name = each.asname or each.name.partition(".")[0]
                self.imports[name] = each.name if each.asname else name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for each in node.names:
                self.imports[each.asname or each.name] = f"{node.module}.{each.name}"
        elif isinstance(node, ast.Assign):
            self.assigned.setdefault(_dotted(node.targets[0]), node.value)

    def line(self, number: int) -> str:
        """Return a line's text, "" where there is none."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""


def call_at(source: Source, line: int, variables: Mapping[str, str]) -> Call | None:
    """Return the call at a line, by its text alone where there are several.

    `variables`: those of the frame, as py-spy prints them.
    """
    text = source.line(line)
    found = _only(source.calls.get(line, []))
    if found is None:
        return Call(text[:MAX_TEXT]) if source.calls.get(line) else None
    try:
        return Call(
            " ".join(ast.unparse(found).split())[:MAX_TEXT],
            _meaning(found.func, source, variables),
            dict(_arguments(found, variables)),
        )
    except RecursionError:  # a sum of thousands of terms is parsed, and not printed
        return Call(text[:MAX_TEXT])


def _only(calls: list[ast.Call]) -> ast.Call | None:
    """Of several the one that is called like a communication."""
    if len(calls) < 2:
        return calls[0] if calls else None
    like = [each for each in calls if plain(_dotted(each.func).rpartition(".")[2]) in COMMUNICATION]
    return like[0] if len(like) == 1 else None


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` as it is written, "" for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _meaning(node: ast.expr, source: Source, variables: Mapping[str, str]) -> str:
    """Return the module and name of a function, as far as the source tells; "" for unknown."""
    if isinstance(node, ast.Name):
        return source.imports.get(node.id, "" if node.id in variables else node.id)
    if not isinstance(node, ast.Attribute):
        return ""
    of = _kind(node.value, source, variables, MAX_STEPS)
    return f"{of}.{node.attr}" if of else ""


def _kind(node: ast.expr, source: Source, variables: Mapping[str, str], steps: int) -> str:
    """Return what a value is by its printed value, else by the first part of what made it."""
    if steps == 0:
        return ""
    name = _dotted(node)
    if name in variables:
        shown = _OBJECT.fullmatch(variables[name])
        return shown[1] if shown else ""
    root, _, rest = name.partition(".")
    if root in source.imports and root not in variables:
        return f"{source.imports[root]}.{rest}".rstrip(".")
    if name and name in source.assigned:
        return _kind(source.assigned[name], source, variables, steps - 1)
    if isinstance(node, ast.Call):
        return _kind(node.func, source, variables, steps - 1)
    if isinstance(node, ast.Attribute):
        return _kind(node.value, source, variables, steps - 1)
    return ""


def _arguments(call: ast.Call, variables: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield those that are numbers or short texts, by their names or places."""
    named = [(str(place), each) for place, each in enumerate(call.args)]
    named += [(each.arg, each.value) for each in call.keywords if each.arg]
    for name, node in named:
        value = _text(node) or _number(node, variables, MAX_STEPS)
        if value is not None:
            yield name, value


def _text(node: ast.expr) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else None


def _number(node: ast.expr, variables: Mapping[str, str], steps: int) -> int | None:
    """Work out a whole number from constants and the frame's variables."""
    if steps == 0:
        return None
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and abs(node.value) < MAX_NUMBER else None
    if isinstance(node, ast.Name):
        shown = variables.get(node.id, "")
        return int(shown) if _NUMBER.fullmatch(shown) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, variables, steps - 1)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _number(node.left, variables, steps - 1)
        right = _number(node.right, variables, steps - 1)
        if left is None or right is None:
            return None
        try:
            return _OPERATORS[type(node.op)](left, right)
        except ZeroDivisionError:
            return None
    return None
