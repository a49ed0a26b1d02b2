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

ROOT: Final = Path(__file__).resolve().parents[2]
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
