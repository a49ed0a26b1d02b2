"""Inside of the extension's package: the pictures of its page, and one wheel of this checkout."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dap_mux.frontends.cli.commands import COMMANDS
from tests.unit.meta.test_docs import ROOT

PACKAGE = ROOT / "vscode-extension/dist/dap-mux.vsix"
SHOWN = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
EMBEDDED = "data:image/png;base64,"


@pytest.fixture
def package() -> Iterator[zipfile.ZipFile]:
    """The package, if there is one."""
    if not PACKAGE.exists():
        pytest.skip("the extension is not packaged: run make vsix")
    with zipfile.ZipFile(PACKAGE) as opened:
        yield opened


def test_each_picture_of_the_page_is_a_real_one(package: zipfile.ZipFile) -> None:
    """An extension's page shows no picture by a relative path."""
    page = package.read("extension/readme.md").decode("utf-8")
    shown = SHOWN.findall(page)
    assert len(shown) == len(
        SHOWN.findall((ROOT / "vscode-extension/README.md").read_text("utf-8"))
    )
    for picture in shown:
        assert picture.startswith(EMBEDDED), picture[:80]
        data = base64.b64decode(picture.removeprefix(EMBEDDED), validate=True)
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        assert width > 0
        assert height > 0


def test_it_has_one_wheel_of_dap_mux(package: zipfile.ZipFile) -> None:
    """Where the button of the walkthrough looks for it: `src/commands/install.ts`."""
    [path] = [name for name in package.namelist() if name.endswith(".whl")]
    version = json.loads(package.read("extension/package.json"))["version"]
    assert path == f"extension/dist/wheel/dap_mux_cluster-{version}-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(package.read(path))) as wheel:
        inside = {*wheel.namelist()}
        share = f"dap_mux_cluster-{version}.data/data/share"
        manual = wheel.read(f"{share}/man/man1/dap-mux.1").decode("utf-8")
        completion = wheel.read(f"{share}/bash-completion/completions/dap-mux").decode("utf-8")
    assert all(f"dap\\-mux {command.name}" in manual for command in COMMANDS)
    assert all(f"_dap_mux_{command.name}_option" in completion for command in COMMANDS)
    assert {
        "dap_mux/__main__.py",
        "dap_mux/rank/agent.py",
        "dap_mux/frontends/lsp/server.py",
    } <= inside
    assert not any(name.startswith(("tests/", "docs/")) for name in inside)


def test_it_passes_on_the_licence_of_each_package_inside(package: zipfile.ZipFile) -> None:
    notices = package.read("extension/dist/THIRD-PARTY-NOTICES.txt").decode("utf-8")
    named = re.findall(r"^(\S+) ([\d.]+) \(([\w-]+)\)$", notices, re.MULTILINE)
    assert {name for name, _, _ in named} == needed_by("vscode-languageclient")
    assert notices.count("THE SOFTWARE IS PROVIDED") == len(named)


def needed_by(package: str) -> set[str]:
    """The package, and what it needs in turn, by the lock file."""
    lock = json.loads((ROOT / "vscode-extension/package-lock.json").read_text("utf-8"))
    needs = {
        path.rpartition("node_modules/")[2]: each.get("dependencies", {})
        for path, each in lock["packages"].items()
    }
    found, left = set[str](), [package]
    while left:
        found.add(name := left.pop())
        left += [each for each in needs[name] if each not in found]
    return found


@pytest.mark.slow
def test_a_wheel_of_an_older_build_does_not_stay(tmp_path: Path) -> None:
    old = tmp_path / "dap_mux_cluster-0.0.9-py3-none-any.whl"
    old.touch()
    make = [ROOT / "tools/make-wheel", tmp_path]
    subprocess.run(make, env={**os.environ, "PYTHON": sys.executable}, check=True)
    [wheel] = tmp_path.glob("*.whl")
    assert wheel != old
