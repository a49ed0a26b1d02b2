"""The wiring check finds callables that are assigned from outside, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("wiring", ROOT / "tools" / "wiring.py")
assert spec is not None
assert spec.loader is not None
wiring = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wiring)

DECLARED = """
from collections.abc import Callable
from typing import TypeAlias
Then: TypeAlias = Callable[[int], None]
class Part:
    count: int
    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.then: Then | None = None
        self.size: int = 0
class Other:
    size: Callable[[], int]
"""
REFUSED = [
    "part.changed = other.told",
    "part.then = other.told",
    "self.part.then = table[0]",
    "part.anything = lambda: None",
    "part.anything = partial(print, 1)",
    "part.anything = self.told",
    "part.anything = helper",
]
ALLOWED = [
    "self.changed = other.told",
    "part.count = 1",
    "part.then = None",
    "part.size = self.size",
    "part.anything = self.value",
    "part.anything = helper()",
    "part.changed()",
    "then = self.told",
]


def found(root: Path, statement: str) -> list[str]:
    """What the tool says about a method with this statement."""
    module = root / "dap_mux" / "engine" / "parts.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        f"""{DECLARED}
def helper() -> int: ...
class User:
    def told(self) -> None: ...
    @property
    def value(self) -> int: ...
    def __init__(self, part, other, table) -> None:
        {statement}
"""
    )
    return list(wiring.violations(root))


@pytest.mark.parametrize("statement", REFUSED)
def test_a_callable_from_outside(statement: str, tmp_path: Path) -> None:
    target = statement.partition(" =")[0]
    (line,) = found(tmp_path, statement)
    assert line.startswith("dap_mux/engine/parts.py:")
    assert target in line


@pytest.mark.parametrize("statement", ALLOWED)
def test_anything_else(statement: str, tmp_path: Path) -> None:
    assert found(tmp_path, statement) == []


def test_a_debugger_in_a_rank_may_be_adjusted(tmp_path: Path) -> None:
    patch = tmp_path / "dap_mux" / "injected" / "patch.py"
    patch.parent.mkdir(parents=True)
    patch.write_text("def ours() -> None: ...\nimport pydevd\npydevd.theirs = ours\n")
    assert list(wiring.violations(tmp_path)) == []
