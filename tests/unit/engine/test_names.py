"""One name for one thing: no two classes or types of the engine are called alike."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[3] / "dap_mux" / "engine"


def names(module: ast.Module) -> list[str]:
    """Classes and aliases of types at the top of a module, without leading underscores."""
    classes = [node.name for node in module.body if isinstance(node, ast.ClassDef)]
    aliases = [
        ast.unparse(node.target)
        for node in module.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
    ]
    return [name.lstrip("_") for name in classes + aliases]


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ENGINE.rglob("*.py")):
        for name in names(ast.parse(path.read_text("utf-8"))):
            places[name].append(str(path.relative_to(ENGINE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
