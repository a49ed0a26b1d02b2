"""The source distribution has every file that its README, and the pages it leads to, link to.

The wheel has a manual page, completions, and the schema of the configuration.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from dap_mux.frontends.cli.commands import COMMANDS
from dap_mux.system.config.options import schema

ROOT: Final = Path(__file__).resolve().parents[3]
LINK: Final = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("hatchling") is None, reason="no hatchling: pip install '.[test]'"
    ),
]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the source distribution unpacks to; it is built without a network."""
    folder = tmp_path_factory.mktemp("sdist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def links(page: Path) -> list[Path]:
    """The local files that a page links to, pictures among them."""
    targets = LINK.findall(page.read_text("utf-8"))
    return [(page.parent / target).resolve() for target in targets]


def test_all_that_the_readme_links_to_is_in_it(unpacked: Path) -> None:
    found = links(unpacked / "README.md")
    assert len(found) > 20
    assert any(path.suffix == ".png" for path in found)
    assert [str(path) for path in found if not path.exists()] == []


def test_so_is_all_that_its_pages_link_to(unpacked: Path) -> None:
    """`CONTRIBUTING.md`, the documentation, and the pages of examples and of the extension."""
    pages = sorted(unpacked.rglob("*.md"))
    assert {"CONTRIBUTING.md", "comparison.md"} <= {page.name for page in pages}
    missing = [
        (page.name, str(path)) for page in pages for path in links(page) if not path.exists()
    ]
    assert missing == []


def test_nothing_is_in_it_that_was_only_made_here(unpacked: Path) -> None:
    names = {path.name for path in unpacked.rglob("*")}
    assert not names & {"node_modules", "__pycache__", ".venv", "dist", "build"}


def test_the_wheel_has_what_shells_man_and_editors_read(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        shared = {
            name.partition(".data/data/share/")[2]: wheel.read(name).decode("utf-8")
            for name in wheel.namelist()
            if ".data/data/share/" in name
        }
    assert json.loads(shared.pop("dap-mux/config.schema.json")) == schema()
    manual = shared.pop("man/man1/dap-mux.1").replace("\\-", "-")
    assert [each.name for each in COMMANDS if f"dap-mux {each.name}" not in manual] == []
    assert {*shared} == {
        "bash-completion/completions/dap-mux",
        "fish/vendor_completions.d/dap-mux.fish",
        "zsh/site-functions/_dap-mux",
    }
    for name, text in shared.items():
        missing = [each.name for each in COMMANDS if not re.search(rf"\b{each.name}\b", text)]
        assert missing == [], name
