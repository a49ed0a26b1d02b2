"""Refuse wiring by assignment: no callable may be assigned to an attribute of another object.

`python tools/wiring.py [ROOT]` prints one line for each violation and exits 1 when there is one.
A part that calls another is given it in its constructor, or tells `Listeners` that add themselves;
what is assigned later can be followed neither by a reader nor by mypy.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "dap_mux"
OWN = frozenset({"self", "cls"})
# What runs in a rank adjusts the debugger there, which is not ours, by assigning to it.
ADJUSTS_OTHERS = frozenset({"injected", "rank"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(arguments: list[str]) -> int:
    """Print the violations below ROOT (this repository by default); 1 when there is any."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(violations(root))
    for line in found:
        print(line)
    if not found:
        print("wiring: no callable is assigned to an attribute of another object")
    return 1 if found else 0


def violations(root: Path) -> Iterator[str]:
    """Every assignment of a callable to another object's attribute, as `file:line: sentence`."""
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"), str(path))
        for path in sorted((root / PACKAGE).rglob("*.py"))
        if path.relative_to(root).parts[1] not in ADJUSTS_OTHERS
    }
    aliases = {name for tree in trees.values() for name in callable_aliases(tree)}
    declared = [each for tree in trees.values() for each in declarations(tree, aliases)]
    values = {name for name, called in declared if not called}
    slots = {name for name, called in declared if called} - values
    for path, tree in trees.items():
        for line, target in assigned(tree, slots):
            where = path.relative_to(root)
            yield f"{where}:{line}: pass {target} to the constructor, or let it add itself"


def callable_aliases(tree: ast.Module) -> Iterator[str]:
    """Names that a module gives to types of callables."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            if is_callable(node.value, frozenset()):
                yield node.target.id
        elif isinstance(node, ast.Assign) and is_callable(node.value, frozenset()):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def declarations(tree: ast.Module, aliases: set[str]) -> Iterator[tuple[str, bool]]:
    """Attributes that classes declare with a type, and whether it is one of callables."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.AnnAssign):
                called = is_callable(part.annotation, aliases)
                if isinstance(part.target, ast.Attribute) and is_own(part.target):
                    yield part.target.attr, called
                elif isinstance(part.target, ast.Name) and part in node.body:
                    yield part.target.id, called


def is_callable(annotation: ast.expr, aliases: set[str] | frozenset[str]) -> bool:
    """Whether this is a type of callables, or None beside one."""
    if isinstance(annotation, ast.BinOp):
        sides = (annotation.left, annotation.right)
        return any(is_callable(side, aliases) for side in sides)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.startswith("Callable[")
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    name = ast.unparse(named).rpartition(".")[2]
    return name in aliases or (name == "Callable" and isinstance(annotation, ast.Subscript))


def assigned(tree: ast.Module, slots: set[str]) -> Iterator[tuple[int, str]]:
    """Where another object's attribute is given a callable, and which."""
    for scope, node in walk(tree, ()):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if not isinstance(target, ast.Attribute) or is_own(target) or is_made(scope):
                continue
            if is_function(value, scope) or (target.attr in slots and not is_none(value)):
                yield node.lineno, ast.unparse(target)


def walk(
    node: ast.AST, scope: tuple[ast.AST, ...]
) -> Iterator[tuple[tuple[ast.AST, ...], ast.AST]]:
    """Every node below this one, with the module, classes and functions that it is in."""
    inside = (*scope, node) if isinstance(node, ast.Module | ast.ClassDef | Function) else scope
    for child in ast.iter_child_nodes(node):
        yield inside, child
        yield from walk(child, inside)


def is_own(target: ast.Attribute) -> bool:
    """Whether this is an attribute of the object itself."""
    return isinstance(target.value, ast.Name) and target.value.id in OWN


def is_made(scope: tuple[ast.AST, ...]) -> bool:
    """Whether this is in the `__new__` that makes the object."""
    return any(isinstance(each, Function) and each.name == "__new__" for each in scope)


def is_none(value: ast.expr) -> bool:
    """Whether nothing is assigned: an object that is done with lets go of what it called."""
    return isinstance(value, ast.Constant) and value.value is None


def is_function(value: ast.expr, scope: tuple[ast.AST, ...]) -> bool:
    """Whether a value is a lambda, a partial, or a function or method defined around it."""
    if isinstance(value, ast.Lambda):
        return True
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in ("partial", "functools.partial")
    if isinstance(value, ast.Name):
        return any(value.id in functions(each) for each in scope if not is_class(each))
    if isinstance(value, ast.Attribute) and is_own(value):
        return any(value.attr in functions(each) for each in scope if is_class(each))
    return False


def is_class(node: ast.AST) -> bool:
    """Whether this is a class."""
    return isinstance(node, ast.ClassDef)


def functions(node: ast.AST) -> set[str]:
    """Functions that a module, class or function defines; a property is a value."""
    return {
        child.name
        for child in ast.iter_child_nodes(node)
        if isinstance(child, Function) and not any(map(is_property, child.decorator_list))
    }


def is_property(decorator: ast.expr) -> bool:
    """Whether a decorator makes a value of a method."""
    return ast.unparse(decorator).rpartition(".")[2] in ("property", "cached_property")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
