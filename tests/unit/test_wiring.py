"""No callable can be assigned to an attribute of another object.

A part that calls another is given it in its constructor, or tells `Listeners` that add themselves:
what is assigned later can be followed neither by a reader nor by mypy. Mypy refuses it for methods
and for `Final` attributes, ruff for private ones (SLF001), Python for frozen objects.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[2] / "dap_mux"
CLOSED: Final = re.compile(r"frozen=True|NamedTuple")
ALIAS: Final = re.compile(r"^(\w+)(?:: TypeAlias)? = \"?Callable\[", re.MULTILINE)
LAZY: Final = {"Fields"}  # compiles its callable itself, when it is first asked for it


def is_callable(annotation: ast.expr | None, aliases: set[str]) -> bool:
    """Whether this is a type of callables, or None beside one."""
    either = ast.unparse(annotation).strip("'\"").split(" | ") if annotation else []
    return any(each in aliases or each.startswith("Callable[") for each in either)


def slots(made: ast.ClassDef, aliases: set[str]) -> Iterator[str]:
    """The attributes of a class that hold a callable, and may be given another one."""
    for node in ast.walk(made):
        if isinstance(node, ast.AnnAssign) and is_callable(node.annotation, aliases):
            yield ast.unparse(node.target).removeprefix("self.")
        elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
            every = (*node.args.args, *node.args.kwonlyargs)
            taken = {each.arg for each in every if is_callable(each.annotation, aliases)}
            for each in ast.walk(node):
                if isinstance(each, ast.Assign) and ast.unparse(each.value) in taken:
                    yield ast.unparse(each.targets[0]).removeprefix("self.")


def test_whoever_holds_a_callable_keeps_it() -> None:
    texts = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    walked = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    classes = [(path, node) for path, node in walked if isinstance(node, ast.ClassDef)]
    aliases = {name for text in texts.values() for name in ALIAS.findall(text)}
    aliases -= {made.name for _, made in classes}
    for path, made in classes:
        header = " ".join(map(ast.unparse, [*made.decorator_list, *made.bases, *made.keywords]))
        public = {each for each in slots(made, aliases) if not each.startswith("_")}
        assert not public or made.name in LAZY or CLOSED.search(header), f"{path}: {public}"
