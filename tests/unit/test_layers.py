"""The layer check finds what it promises to find, and this repository is clean."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_tool() -> ModuleType:
    """Import tools/layers.py, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("layers", ROOT / "tools" / "layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["layers"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


layers = load_tool()


def write_tree(root: Path, files: dict[str, str]) -> Path:
    """Lay out a package `dap_mux` with these files."""
    for name, text in {"__init__.py": "", **files}.items():
        path = root / "dap_mux" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def found(root: Path) -> list[str]:
    """Everything that the tool has to say about a tree."""
    return [
        *layers.violations(root),
        *layers.engine_rooms(root),
        *layers.slow_starts(root),
        *layers.circles(root),
    ]


@pytest.mark.slow  # `make check` runs the tool itself
def test_this_repository_is_clean() -> None:
    assert found(ROOT) == []


ALLOWED = [
    ("engine/stops/x.py", "from dap_mux.rank_sets import RankSet"),
    ("engine/stops/x.py", "from ..state import threads\nfrom . import aggregate"),
    (
        "engine/state/x.py",
        "from pathlib import PurePosixPath\nimport random\nr = random.Random(1)",
    ),
    ("protocol/messages.py", "import msgspec, json, re"),
    ("rank/listen.py", "import debugpy, socket, os"),
    ("cli/run.py", "from dap_mux import __version__\nfrom dap_mux.cluster.endpoints import parse"),
    ("__init__.py", "def __getattr__(name):\n    from dap_mux import rank"),
]


@pytest.mark.parametrize(("file", "text"), ALLOWED)
def test_allowed(tmp_path: Path, file: str, text: str) -> None:
    assert found(write_tree(tmp_path, {file: text})) == []


FORBIDDEN = [
    (
        "engine/stops/x.py",
        "import socket",
        "engine is pure: it may not import socket (network)",
    ),
    (
        "engine/stops/x.py",
        "import os.path",
        "engine is pure: it may not import os.path (system)",
    ),
    (
        "engine/stops/x.py",
        "def f():\n    from time import time",
        "may not import time.time (clock",
    ),
    ("engine/stops/x.py", "from pathlib import Path", "may not import pathlib.Path (files)"),
    ("engine/stops/x.py", "import random\nrandom.random()", "may not call random.random()"),
    ("engine/stops/x.py", "async def f(): ...", "no coroutines in it"),
    ("engine/stops/x.py", "open('x')", "may not call open()"),
    ("engine/stops/x.py", "import anyio", "engine may not import anyio"),
    (
        "engine/stops/x.py",
        "from dap_mux.shell import driver",
        "engine may not import dap_mux.shell",
    ),
    ("engine/ranks/x.py", "from ...shell import driver", "engine may not import dap_mux.shell.dri"),
    (
        "engine/stops/x.py",
        "from ..clients import attach",
        "stops may not import dap_mux.engine.clients.attach, which is above it",
    ),
    ("engine/oracle.py", "", "in no room of the engine"),
    ("errors.py", "from dap_mux import config", "errors may not import dap_mux.config"),
    ("rank/listen.py", "import msgspec", "rank may not import msgspec"),
    ("rank/listen.py", "from dap_mux import __version__", "rank may not import dap_mux"),
    ("rank/listen.py", "from dap_mux.errors import Refused", "rank may not import dap_mux.errors"),
    ("shell/driver.py", "import dap_mux.session", "shell may not import dap_mux.session"),
    ("cli/run.py", "import dap_mux.cluster.local", "cli may not import dap_mux.cluster.local"),
    ("cli/run.py", "import dap_mux.cluster.endpoints_more", "cli may not import dap_mux.cluster"),
    ("client/link.py", "import dap_mux.engine", "client may not import dap_mux.engine"),
    ("oracle/delphi.py", "", "'oracle' has no row in tools/layers.py"),
]


@pytest.mark.parametrize(("file", "text", "sentence"), FORBIDDEN)
def test_forbidden(tmp_path: Path, file: str, text: str, sentence: str) -> None:
    lines = found(write_tree(tmp_path, {file: text}))
    assert any(sentence in line and line.startswith(f"dap_mux/{file}:") for line in lines), lines


def test_circles_are_found_where_only_type_checkers_see_them(tmp_path: Path) -> None:
    lazy = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dap_mux.shell import b"
    files = {"shell/__init__.py": "", "shell/a.py": lazy, "shell/b.py": "import dap_mux.shell.a"}
    (line,) = layers.circles(write_tree(tmp_path, files))
    assert line.startswith("circle: ")
    assert {"dap_mux.shell.a", "dap_mux.shell.b"} <= set(line.split())


def test_slow_start_is_found_through_another_module(tmp_path: Path) -> None:
    files = {
        "session.py": "from dap_mux.shell import driver",
        "shell/__init__.py": "",
        "shell/driver.py": "import rich.table",
    }
    assert "dap_mux/shell/driver.py:1: the adapter's start would import rich.table" in found(
        write_tree(tmp_path, files)
    )


def test_slow_import_inside_a_function_costs_the_adapter_nothing(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"session.py": "def later():\n    import rich"})
    assert list(layers.slow_starts(tree)) == []


@pytest.mark.slow
def test_exit_status_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert layers.main([str(write_tree(tmp_path, {"errors.py": "import os"}))]) == 1
    assert capsys.readouterr().out == (
        "dap_mux/errors.py:1: errors is pure: it may not import os (system)\n"
    )
    assert layers.main([str(ROOT)]) == 0
