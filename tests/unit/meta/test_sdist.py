"""The source distribution has every file that its README, and the pages it leads to, link to."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

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
