"""Commands that need an extra: what they say without it, and that they name all of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

import pytest

from dap_mux import frontends
from dap_mux.frontends.cli import lsp, main, mcp

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT: Final = Path(__file__).resolve().parents[3]
EXTRAS: Final = [("lsp", lsp.PACKAGES, "lsprotocol"), ("mcp", mcp.PACKAGES, "mcp")]


@pytest.mark.parametrize(("command", "packages", "missing"), EXTRAS)
def test_without_its_extra_it_says_what_helps(
    command: str,
    packages: tuple[str, ...],
    missing: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = f"dap_mux.frontends.{command}"
    # Importing it anew puts another there.
    monkeypatch.setattr(frontends, command, getattr(frontends, command, None), raising=False)
    for name in [*sys.modules]:
        if name.startswith(ours) or name.partition(".")[0] in ("pygls", missing):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main([command]) == 1
    [line] = capsys.readouterr().err.strip().splitlines()
    assert f"{missing} is missing" in line or f"{missing}.server is missing" in line
    words = shlex.split(line.partition("missing): ")[2])
    assert words == [sys.executable, "-m", "pip", "install", *packages]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert list(packages) == project["optional-dependencies"][command]
