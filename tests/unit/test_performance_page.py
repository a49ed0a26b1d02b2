"""docs/performance.md is what a run of all benchmarks writes, and nothing else."""

from __future__ import annotations

import re
from typing import Final

from tests.bench.figures import Figure
from tests.bench.page import BENCHMARKS, COLUMNS, PAGE, changed, text

MACHINE: Final = re.compile(r"Measured with \d+ cores, Python [\d.]+\.")
ROW: Final = re.compile(r"(?m)^\|.*\n")


def without_figures(page: str) -> str:
    return ROW.sub("", MACHINE.sub("", page))


def test_it_has_every_benchmark_and_no_word_of_its_own() -> None:
    page = PAGE.read_text("utf-8")
    assert without_figures(page) == without_figures(text({name: [] for name in BENCHMARKS}))


def test_every_section_has_figures() -> None:
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        rows = ROW.findall(section + "\n")
        assert len(rows) > len(("head", "rule")), section
        assert {row.count("|") for row in rows} == {len(COLUMNS) + 1}


def test_a_section_is_made_anew_and_the_others_stay() -> None:
    old, new = Figure("a stop", "3 s"), Figure("a stop", "2 s")
    page = text({"growth": [old], "startup": [old]})
    assert changed(page, {"growth": [new]}) == text({"growth": [new], "startup": [old]})


def test_a_broken_bound_is_seen() -> None:
    broken = Figure("a stop", "3 s", "1 s floor", "3 x", "<= 2 x", held=False)
    last = text({"growth": [broken]}).splitlines()[-1]
    assert last == "| a stop | 3 s | 1 s floor | 3 x | <= 2 x | **not kept** |"
