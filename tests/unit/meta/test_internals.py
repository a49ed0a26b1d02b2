"""docs/internals and CONTRIBUTING: the files and tests that they name are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.unit.meta.test_composition import CONTRACTS

ROOT: Final = Path(__file__).resolve().parents[3]
PAGES: Final = [ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/internals/*.md"))]
NAMED: Final = re.compile(r"`((?:dap_mux|docs|tests|tools)/[\w/.\-]+?)(?:::(\w+))?`")
LINK: Final = re.compile(r"docs/internals/(\w+\.md)#([\w-]+)")
HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
MEASURED: Final = "## Measured, but not relied on"


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    heads = HEADING.findall(page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    for path, function in NAMED.findall(page.read_text("utf-8")):
        file = ROOT / path
        assert file.exists(), f"{page.name} names {path}"
        if function:
            assert f"def {function}(" in file.read_text("utf-8"), f"{path}::{function}"


def test_every_behaviour_of_debugpy_has_its_price_and_its_test() -> None:
    page = (ROOT / "docs/internals/debugpy.md").read_text("utf-8").partition(MEASURED)[0]
    sections = page.split("\n### ")[1:]
    assert len(sections) > 30
    for section in sections:
        heading = section.partition("\n")[0]
        for part in ("- Cost: ", "- Code: ", "- Test: `tests/"):
            assert part in section, f"{heading}: no {part!r}"


def test_every_promise_has_its_test() -> None:
    page = (ROOT / "docs/internals/guarantees.md").read_text("utf-8")
    promises = [line for line in page.splitlines() if line.startswith("- ")]
    assert len(promises) > 25
    listeners = [line for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    for row in [*promises, *listeners[1:]]:
        assert "`tests/" in row, row


def test_every_room_of_the_engine_is_described() -> None:
    page = (ROOT / "docs/internals/architecture.md").read_text("utf-8")
    (rooms,) = (
        each["layers"] for each in CONTRACTS if each.get("containers") == ["dap_mux.engine"]
    )
    assert [room for room in rooms if f"`{room.replace('.', '/')}`" not in page] == []


def test_every_link_from_the_code_leads_to_a_heading() -> None:
    """Comments link to a heading instead of repeating what stands there."""
    for file in [*ROOT.glob("dap_mux/**/*.py"), *ROOT.glob("tests/**/*.py")]:
        for page, anchor in LINK.findall(file.read_text("utf-8")):
            known = slugs(ROOT / "docs/internals" / page)
            assert anchor in known, f"{file.relative_to(ROOT)}: {page}#{anchor}"
