"""How parts are put together, as far as neither mypy, ruff nor import-linter can say it."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[3]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CONTRACTS: Final[list[dict[str, Any]]] = PROJECT["tool"]["importlinter"]["contracts"]
DEFECTS: Final = re.compile(r"\b(AttributeError|IndexError|KeyError|LookupError|TypeError)\b")


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """The product's whole syntax, each node with its file."""
    files = [path.relative_to(ROOT) for path in sorted((ROOT / "dap_mux").rglob("*.py"))]
    texts = {file.as_posix(): (ROOT / file).read_text("utf-8") for file in files}
    return [(file, node) for file, text in texts.items() for node in ast.walk(ast.parse(text))]


def test_the_pure_parts_have_no_coroutines_and_ask_nobody() -> None:
    """What else is not pure, import-linter and ruff refuse."""
    (pure,) = (each["source_modules"] for each in CONTRACTS if "asyncio" in str(each))
    parts = tuple(f"{part}." for part in pure)
    for file, node in nodes():
        asks = isinstance(node, ast.Call) and getattr(node.func, "id", None) == "input"
        if asks or isinstance(node, ast.AsyncFunctionDef):
            assert not file.replace("/", ".").startswith(parts), f"{file}: {ast.unparse(node)}"


def test_every_distribution_has_its_importers() -> None:
    known = {name for each in CONTRACTS for name in each.get("protected_modules", ())}
    for file, node in nodes():
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = getattr(node, "module", None) or node.names[0].name
            top = named.partition(".")[0]
            assert top in {"dap_mux", *sys.stdlib_module_names, *known}, f"{file}:{node.lineno}"


def test_no_class_has_a_hole_that_another_must_fill() -> None:
    """A part that needs another takes it in its constructor."""
    for file, node in nodes():
        assert getattr(node, "id", None) != "NotImplementedError", file


def test_what_only_a_defect_raises_is_caught_around_one_expression() -> None:
    """In the engine, whose one guard catches the rest; ruff (BLE) refuses to catch all."""
    for file, node in nodes():
        if not isinstance(node, ast.Try) or not file.startswith("dap_mux/engine/"):
            continue
        if len(node.body) == 1 and isinstance(node.body[0], ast.Assign | ast.Return):
            continue
        for each in node.handlers:
            caught = each.type and DEFECTS.search(ast.unparse(each.type))
            raised_again = isinstance(each.body[-1], ast.Raise)
            assert raised_again or not caught, f"{file}:{each.lineno}"


# No callable can be assigned to an attribute of another object.

PACKAGE: Final = Path(__file__).resolve().parents[3] / "dap_mux"
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
