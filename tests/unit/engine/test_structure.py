"""How the code of the engine is made: one owner, one name, one handler for each thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

import dap_mux.engine
from dap_mux.engine import Engine, inputs
from dap_mux.session.session import injected_sources

ENGINE: Final = Path(dap_mux.engine.__file__).parent
OWNERS: Final = {
    "phase": {"ranks/connector.py"},
    "reason": {"state/session.py"},
    "stop": {"state/session.py"},
    "pausing": {"state/session.py"},
    "waits_for": {"job_insight/partial_moves.py"},
    "at_barrier": {"stops/aggregate.py", "barriers/barriers.py"},
}


def assigned(tree: ast.AST) -> Iterator[str]:
    """Names of the attributes that code assigns to, of whatever object but `self`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            yield node.attr


def test_each_part_of_a_row_has_its_owner() -> None:
    found: dict[str, set[str]] = {name: set() for name in OWNERS}
    for path in ENGINE.rglob("*.py"):
        for name in set(assigned(ast.parse(path.read_text("utf-8")))) & OWNERS.keys():
            found[name].add(path.relative_to(ENGINE).as_posix())
    assert found == OWNERS


# One name for one thing: no two classes or types of the engine are called alike.


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


# Each input of the engine has its handler.


def test_each_input_has_its_handler() -> None:
    assert Engine(injected_sources())._take.keys() == set(get_args(inputs.Input))
