"""Every row of docs/faults.md names a test that there is, and every test of faults has a row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
NAMED: Final = re.findall(
    r"\| (tests/[\w/]+\.py)::(\w+) \|$", (ROOT / "docs/faults.md").read_text("utf-8"), re.MULTILINE
)
TESTS: Final = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
BESIDE: Final = {"test_10_mb_to_a_rank"}  # in the row of the other direction


def test_every_row_has_its_test() -> None:
    assert len(NAMED) > 25
    for path, name in NAMED:
        assert name in TESTS.findall((ROOT / path).read_text("utf-8")), f"{path}::{name}"


def test_every_fault_has_its_row() -> None:
    files = (ROOT / "tests/real/faults").glob("test_faults_*.py")
    tests = {name for file in files for name in TESTS.findall(file.read_text("utf-8"))}
    assert tests - BESIDE <= {name for _, name in NAMED}
