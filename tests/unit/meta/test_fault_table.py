"""tests/real/faults/rows.txt names tests for each fault that users are told of, and each test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
USERS_PAGE: Final = (ROOT / "docs/faults.md").read_text("utf-8")
TESTERS_PAGE: Final = (ROOT / "tests/real/faults/rows.txt").read_text("utf-8").splitlines()
ROW: Final = re.compile(r"^- \*\*(.+?)\*\*: ", re.MULTILINE)
NAMED: Final = [line.split("::") for line in TESTERS_PAGE if line.startswith("    tests/")]
TESTS: Final = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
BESIDE: Final = {"test_10_mb_to_a_rank"}  # in the row of the other direction


def test_every_fault_that_users_are_told_of_has_its_tests() -> None:
    faults = ROW.findall(USERS_PAGE)
    assert len(faults) > 25
    told = [line for line in TESTERS_PAGE if line and not line.startswith(("#", " "))]
    assert told == faults
    after = [TESTERS_PAGE[TESTERS_PAGE.index(fault) + 1] for fault in faults]
    assert all(line.startswith("    tests/") for line in after)


def test_every_row_has_its_test() -> None:
    for path, name in NAMED:
        assert name in TESTS.findall((ROOT / path.strip()).read_text("utf-8")), f"{path}::{name}"


def test_every_test_of_a_fault_has_its_row() -> None:
    files = (ROOT / "tests/real/faults").glob("test_faults_*.py")
    tests = {name for file in files for name in TESTS.findall(file.read_text("utf-8"))}
    assert tests - BESIDE <= {name for _, name in NAMED}


def test_users_are_not_told_of_tests() -> None:
    assert "tests/" not in USERS_PAGE.partition("\n- ")[2]
