"""docs/internals/faults.md has a row for each fault that users are told of, and for each test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
USERS_PAGE: Final = (ROOT / "docs/faults.md").read_text("utf-8")
TESTERS_PAGE: Final = (ROOT / "docs/internals/faults.md").read_text("utf-8")
ROW: Final = re.compile(r"^\| (?!what happens)([^|]+?) \| ", re.MULTILINE)
NAMED: Final = re.findall(r"\| `(tests/[\w/]+\.py)::(\w+)` \|$", TESTERS_PAGE, re.MULTILINE)
TESTS: Final = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
BESIDE: Final = {"test_10_mb_to_a_rank"}  # in the row of the other direction


def test_every_fault_that_users_are_told_of_has_its_row() -> None:
    faults = ROW.findall(USERS_PAGE)
    assert len(faults) > 25
    assert ROW.findall(TESTERS_PAGE) == faults
    assert len(NAMED) == len(faults)


def test_every_row_has_its_test() -> None:
    for path, name in NAMED:
        assert name in TESTS.findall((ROOT / path).read_text("utf-8")), f"{path}::{name}"


def test_every_test_of_a_fault_has_its_row() -> None:
    files = (ROOT / "tests/real/faults").glob("test_faults_*.py")
    tests = {name for file in files for name in TESTS.findall(file.read_text("utf-8"))}
    assert tests - BESIDE <= {name for _, name in NAMED}


def test_users_are_not_told_of_tests() -> None:
    assert "tests/" not in USERS_PAGE
