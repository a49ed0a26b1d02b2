"""docs/engines.md: each row of its tables names a test that there is."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/engines.md").read_text("utf-8")
ROW = re.compile(r"^\|.*\| (`[^|]+`) \|$", re.MULTILINE)
HEADS = ("| its page |", "|---|")


@lru_cache
def names_in(file: str) -> frozenset[str]:
    """The names of a file's tests."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in tree.body if isinstance(each, kinds))


def rows() -> list[str]:
    """The lines of all tables, without their heads."""
    lines = PAGE.splitlines()
    return [each for each in lines if each.startswith("|") and not each.startswith(HEADS)]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[2:40])
def test_a_row_names_its_tests(row: str) -> None:
    assert ROW.fullmatch(row), "the last cell is no test"
    for each in row.rsplit(" | ", maxsplit=1)[-1].removesuffix(" |").split(", "):
        file, name = each.strip("`").split("::")
        assert name in names_in(file)


@pytest.mark.parametrize("engine", ["Monarch", "Ray", "Dask", "OpenPAI", "OpenShift"])
def test_every_engine_has_a_table(engine: str) -> None:
    section = re.split(rf"^## {engine}$", PAGE, flags=re.MULTILINE)[1]
    assert section.partition("\n## ")[0].count("\n| ") > 8
