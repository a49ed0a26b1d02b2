"""What can be read in a program's text: which statements enclose a line, where a value is from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

RANK: Final = re.compile(r"\b(\w*rank\w*|RANK)\b")
"""What makes one rank do other than the rest, by its usual name."""
COMMUNICATION: Final = re.compile(
    r"\b_?(?:i?all_?reduce|all_?gather|all_?to_?all|reduce|gather|scatter|broadcast|bcast|barrier"
    r"|exchange|i?recv|receive|i?send|sync|synchronize|backward)(?:_\w+|v)?\b",
    re.IGNORECASE,
)
LEAVES: Final = (ast.Break, ast.Return, ast.Continue)
ENDS: Final = re.compile(r"\b(sys\.exit|os\._exit|exit|quit|os\.kill|abort)\(|raise SystemExit")
SIZE: Final = re.compile(r"(world_?)?size|WORLD(_SIZE)?", re.IGNORECASE)
MAX_SLICE: Final = 40
Block = ast.If | ast.For | ast.While | ast.Try | ast.ExceptHandler
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Program:
    """A file of the job, as `source` shows it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = [*lines]
        try:
            self.tree = ast.parse("\n".join(lines))
        except (SyntaxError, ValueError):
            self.tree = ast.Module([], [])
        found = (node for node in ast.walk(self.tree) if isinstance(node, Function))
        self.functions: dict[str, Function] = {node.name: node for node in found}
        arguments = {each.arg for each in ast.walk(self.tree) if isinstance(each, ast.arg)}
        stored = (_assigned(node) for node in _statements(self.tree))
        self.variables: set[str] = arguments.union(*stored)

    def text(self, line: int) -> str:
        """Return a line, "" where there is none."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def statement(self, line: int) -> ast.stmt | None:
        """Return the innermost statement that a line is part of."""
        found = [node for node in _statements(self.tree) if _holds(node, line)]
        return max(found, key=lambda node: node.lineno) if found else None

    def function(self, line: int) -> Function | None:
        """Return the innermost function around a line."""
        found = [node for node in self.functions.values() if _holds(node, line)]
        return max(found, key=lambda node: node.lineno) if found else None

    def scope(self, line: int) -> ast.AST:
        """Return the function around a line, or the module."""
        return self.function(line) or self.tree

    def branches(self, line: int) -> list[tuple[Block, str]]:
        """Return the blocks around a line, outermost first, each with the part it is in."""
        found: list[tuple[Block, str]] = []
        for node in ast.walk(self.scope(line)):
            if isinstance(node, Block):
                found += [
                    (node, part)
                    for part in ("body", "orelse", "handlers", "finalbody")
                    if any(_holds(each, line) for each in getattr(node, part, ()))
                ]
        return sorted(found, key=lambda one: one[0].lineno)

    def assignments(self, name: str, line: int) -> list[ast.stmt]:
        """Return the statements that give a name its value, in the scope of a line or else above.

        The nearest before the line comes first.
        """
        for scope in (self.scope(line), self.tree):
            found = [node for node in _statements(scope) if name in _assigned(node)]
            found = [node for node in found if self.scope(node.lineno) is scope]
            if found:
                return sorted(found, key=lambda node: (node.lineno > line, -node.lineno))
        return []

    def uses(self, name: str, function: str) -> list[ast.stmt]:
        """Return the statements of a function that read a variable."""
        found = self.functions.get(function)
        return [node for node in _statements(found) if name in used(node)] if found else []

    def origins(self, line: int) -> list[ast.stmt]:
        """Return the statements that what a line uses depends on, nearest first."""
        statement = self.statement(line)
        seen: list[ast.stmt] = [] if statement is None else [statement]
        for node in seen:
            for name in used(node):
                new = [each for each in self.assignments(name, node.lineno) if each not in seen]
                seen += new[: MAX_SLICE - len(seen)]
            for name in called(node):
                if name in self.functions and len(seen) < MAX_SLICE:
                    body = _statements(self.functions[name])
                    seen += [each for each in body if isinstance(each, ast.Return)]
        return seen

    def rank_dependent(self, line: int) -> int:
        """Return the nearest line that `line` depends on and that names a rank; 0 for none."""
        for node in self.origins(line):
            if RANK.search(head(node)) and not _only_reads_rank(node):
                return node.lineno
        return 0

    def by_rank_in(self, function: str, at_fault: frozenset[int], size: int) -> int:
        """Return the line of a function that tells ranks at fault from the rest, else its return.

        It is that of a condition which they alone do not fulfil, or what they alone do.
        """
        nodes = [node for node in _statements(self.functions[function]) if node.lineno]
        nodes = sorted(nodes, key=lambda node: node.lineno)
        for node in nodes:
            if isinstance(node, ast.If | ast.While):
                held = {rank for rank in range(size) if _holds_for(node.test, rank, size)}
                if held and held == at_fault:
                    return node.body[0].lineno
                if held and held == {*range(size)} - at_fault:
                    return node.lineno
        guarded = [node for node in nodes if self.is_guarded(node)]
        returns = [node for node in nodes if isinstance(node, ast.Return)]
        return next((node.lineno for node in (*guarded, *returns)), 0)

    def says(self, words: str) -> int:
        """Return the line of the first call that says so, 0 for none."""
        calls = (node for node in _statements(self.tree) if called(node))
        found = (node.lineno for node in calls if words in head(node))
        return min(found, default=0)

    def changed_by(self, node: ast.stmt) -> ast.stmt | None:
        """Return the call just before a statement that only reads what something else has."""
        if any(isinstance(each, ast.Call) for each in _parts(node)):
            return None
        inside = self.function(node.lineno)
        calls = [
            each
            for each in _statements(inside or self.tree)
            if isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Call)
            and each.lineno < node.lineno
            and self.function(each.lineno) is inside
        ]
        return max(calls, key=lambda each: each.lineno, default=None)

    def is_guarded(self, node: ast.stmt) -> bool:
        """Whether a statement is in an `if` that names a rank."""
        blocks = [block for block, _ in self.branches(node.lineno) if isinstance(block, ast.If)]
        return any(block is not node and RANK.search(head(block)) for block in blocks)

    def exits(self, first: int, last: int) -> Iterator[ast.stmt]:
        """Yield the statements between two lines that leave a loop, a function or the program."""
        for node in _statements(self.tree):
            if first <= node.lineno <= last and (
                isinstance(node, LEAVES) or ENDS.search(head(node))
            ):
                yield node


class _OfRank(ast.NodeTransformer):
    """Puts numbers in place of what is named as a rank, or as the number of ranks."""

    def __init__(self, rank: int, size: int) -> None:
        self._numbers = ((RANK, rank), (SIZE, size))

    def _known(self, name: str, node: ast.expr) -> ast.expr:
        found = (number for words, number in self._numbers if words.fullmatch(name))
        return next((ast.Constant(number) for number in found), node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a variable."""
        return self._known(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replace an attribute, of whatever object."""
        return self._known(node.attr, node)


def _holds_for(test: ast.expr, rank: int, size: int) -> bool:
    """Whether a condition holds for a rank; it has nothing but ranks, numbers and operators."""
    known = _OfRank(rank, size).visit(ast.parse(ast.unparse(test), mode="eval"))
    if any(isinstance(each, ast.Name | ast.Call | ast.Attribute) for each in ast.walk(known)):
        return False
    try:
        return bool(eval(ast.unparse(known), {"__builtins__": {}}))
    except (ArithmeticError, TypeError, ValueError, LookupError):
        return False


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node is not tree)


def _holds(node: ast.stmt | ast.ExceptHandler, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _parts(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield a statement's own expressions, not those of statements inside of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr | ast.withitem | ast.comprehension):
            yield from ast.walk(child)


def head(node: ast.stmt) -> str:
    """Return the text of a statement without those inside of it."""
    return " ".join(
        ast.unparse(each)
        for each in ast.iter_child_nodes(node)
        if isinstance(each, ast.expr | ast.withitem)
    )


def _assigned(node: ast.stmt) -> set[str]:
    loops = [each.target for each in _parts(node) if isinstance(each, ast.comprehension)]
    inner = {each.id for loop in loops for each in ast.walk(loop) if isinstance(each, ast.Name)}
    stored = {each.id for each in _parts(node) if isinstance(each, ast.Name) and _stores(each)}
    stored -= inner
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    inside = {_root(each) for each in targets if isinstance(each, ast.Attribute | ast.Subscript)}
    return stored | inside


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def used(node: ast.stmt) -> list[str]:
    """Return the names that a statement reads, in the order of its text."""
    found = [each for each in _parts(node) if isinstance(each, ast.Name)]
    calls = {id(each.func) for each in _parts(node) if isinstance(each, ast.Call)}
    read = [each.id for each in found if not _stores(each) and id(each) not in calls]
    if isinstance(node, ast.AugAssign):
        read.append(_root(node.target))
    return list(dict.fromkeys(filter(None, read)))


def called(node: ast.stmt) -> list[str]:
    """Return the names of what a statement calls."""
    calls = [each.func for each in _parts(node) if isinstance(each, ast.Call)]
    return [each.id for each in calls if isinstance(each, ast.Name)] + [
        each.attr for each in calls if isinstance(each, ast.Attribute)
    ]


def _only_reads_rank(node: ast.stmt) -> bool:
    """Whether it is `rank = int(os.environ["RANK"])` and the like."""
    return any(RANK.fullmatch(name) for name in _assigned(node))
