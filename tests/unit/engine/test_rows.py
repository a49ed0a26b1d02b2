"""What `list` shows of a rank is changed in few places, each of which marks the rank as changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import dap_mux.engine

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
