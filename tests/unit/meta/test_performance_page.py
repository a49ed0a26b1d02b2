"""docs/performance.md is what a run of all benchmarks writes, and nothing else."""

from __future__ import annotations

import re
from typing import Final

from tests.bench.figures import Figure, not_measured
from tests.bench.page import BENCHMARKS, COLUMNS, PAGE, changed, text, title

MACHINE: Final = re.compile(r"Measured with \d+ cores, Python\s[\d.]+\.")
ROW: Final = re.compile(r"(?m)^\|.*\n")
UNBOUNDED: Final = "further"


def without_figures(page: str) -> str:
    return ROW.sub("", MACHINE.sub("", page))


def figures() -> dict[str, list[Figure]]:
    return {name: [Figure(name, "1 s", held=True)] for name in BENCHMARKS if name != UNBOUNDED}


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


def test_figures_without_a_bound_are_not_on_the_page() -> None:
    assert text(figures() | {UNBOUNDED: [Figure("a list", "3 s")]}) == text(figures())


def test_what_could_not_be_measured_is_on_the_page() -> None:
    assert "| not measured | no Monarch |" in text(
        {"monarch": [not_measured("list", "no Monarch")]}
    )


def test_a_benchmark_is_made_anew_and_the_others_stay() -> None:
    old, new = Figure("a stop", "3 s", held=True), Figure("a stop", "2 s", held=True)
    page = text({"growth": [old], "startup": [old]})
    assert changed(page, {"growth": [new]}) == text({"growth": [new], "startup": [old]})


def test_a_broken_bound_is_seen() -> None:
    broken = Figure("a stop", "3 s", "1 s floor", "3 x", "<= 2 x", held=False)
    last = text({"growth": [broken]}).splitlines()[-1]
    assert last == "| Growth | a stop | 3 s | 1 s floor | 3 x | <= 2 x **not kept** |"
