"""The check of how parts are put together finds what it promises to find."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_tool() -> ModuleType:
    """Import tools/composition.py, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("composition", ROOT / "tools/composition.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


composition = load_tool()


def found(root: Path, text: str, name: str = "dap_mux/engine/x.py") -> list[str]:
    """What the tool says of a tree with this module alone."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return list(composition.violations(root))


@pytest.mark.parametrize(
    "text", ["raise NotImplementedError", "def f():\n    raise NotImplementedError('later')"]
)
def test_holes_are_found(tmp_path: Path, text: str) -> None:
    (line,) = found(tmp_path, text)
    assert line.endswith("a hole: take the other part in the constructor")


@pytest.mark.parametrize(
    "text",
    [
        "from dap_mux.engine.messages import faults, to_ranks",
        "from dap_mux.engine.messages.faults import run",
    ],
)
def test_the_guard_stands_in_one_place(tmp_path: Path, text: str) -> None:
    (line,) = found(tmp_path, text)
    assert "takes the guard" in line
    assert not found(tmp_path / "other", text, "dap_mux/engine/engine.py")


CATCH = "try:\n    f()\n    g()\nexcept {}:\n    {}\n"


@pytest.mark.parametrize("what", ["TypeError", "(PeerFault, KeyError)", "Exception", ""])
def test_catches_of_defects_are_found(tmp_path: Path, what: str) -> None:
    (line,) = found(tmp_path, CATCH.format(what, "pass"))
    assert line.startswith("dap_mux/engine/x.py:4: catches ")


@pytest.mark.parametrize(
    "text",
    [
        CATCH.format("PeerFault", "pass"),
        CATCH.format("Exception", "raise"),
        "try:\n    x = table[key]\nexcept KeyError:\n    pass\n",
    ],
)
def test_what_may_be_caught(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


def test_outside_the_engine(tmp_path: Path) -> None:
    assert found(tmp_path, CATCH.format("Exception", "pass"), "dap_mux/shell/x.py") == []
