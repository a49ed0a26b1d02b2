"""docs/performance.md is what a run of all benchmarks writes, and nothing else."""

from __future__ import annotations

import re
from typing import Final

from tests.bench.figures import Figure
from tests.bench.page import BENCHMARKS, COLUMNS, PAGE, text, title

MACHINE: Final = re.compile(r"Measured with \d+ cores, Python\s[\d.]+\.")
ROW: Final = re.compile(r"(?m)^\|.*\n")


def without_figures(page: str) -> str:
    return ROW.sub("", MACHINE.sub("", page))


def figures() -> dict[str, list[Figure]]:
    return {name: [Figure(name, "1 s", held=True)] for name in BENCHMARKS}


def test_it_has_every_benchmark_and_no_word_of_its_own() -> None:
    page = PAGE.read_text("utf-8")
    assert without_figures(page) == without_figures(text(figures()))


def test_every_benchmark_has_figures() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert {row.count("|") for row in rows} == {len(COLUMNS) + 1}
    shown = [
        name for name in BENCHMARKS if any(row.startswith(f"| {title(name)} | ") for row in rows)
    ]
    assert shown == list(figures())
