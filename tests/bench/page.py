"""docs/performance.md, made of a run of all benchmarks: every promise beside its baseline."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.figures import NOT_MEASURED, Figure

PAGE: Final = Path(__file__).resolve().parents[2] / "docs/performance.md"
# Each scene, by the file in which it is a function: its docstring says how it is measured.
BENCHMARKS: Final = {
    "evaluate": "evaluate",
    "cost": "cost",
    "passthrough": "evaluate",
    "attach32": "attaching",
    "default": "attaching",
    "cast": "many_ranks",
    "monarch": "monarch",
    "vscode": "windows",
    "language_server": "language_server",
    "growth": "growth",
    "startup": "startup",
    "differ": "evaluate",
    "comm": "comm",
    "stacks": "many_ranks",
    "stacks_view": "windows",
}
HEAD: Final = """\
# Performance

`make bench` measures what is promised here, each figure beside a baseline in the same run, and
fails where a bound is broken; `make performance` writes this page. Times are medians and depend on
the machine: compare ratios. Of several figures under one bound this page has one, and `make bench`
prints all. `tests/bench` says how each scene is measured. Measured with {cores} cores, Python
{python}.
"""
COLUMNS: Final = ("scene", "what", "dap-mux", "beside", "ratio", "bound")


def scene(name: str) -> Callable[[], Iterable[Figure]]:
    """Import a scene."""
    found: Callable[[], Iterable[Figure]]
    found = getattr(importlib.import_module(f"tests.bench.{BENCHMARKS[name]}"), name)
    return found


def text(results: Mapping[str, Sequence[Figure]]) -> str:
    """Return the page; `results` by the name of their benchmark."""
    head = HEAD.format(cores=os.cpu_count(), python=platform.python_version())
    rows = [_row(name, one) for name, found in results.items() for one in _summary(found)]
    return _page(head, rows)


def changed(page: str, results: Mapping[str, Sequence[Figure]]) -> str:
    """Return the page with the rows of these benchmarks made anew; each is of one run."""
    head = page.partition("\n\n| ")[0]
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    kept = {name: [row for row in rows if _scene_of(row) == title(name)] for name in BENCHMARKS}
    made = {name: [_row(name, one) for one in _summary(found)] for name, found in results.items()}
    return _page(head, [row for found in (kept | made).values() for row in found])


def _page(head: str, rows: Sequence[str]) -> str:
    table = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}", *rows]
    return f"{head.rstrip()}\n\n" + "\n".join(table) + "\n"


def title(name: str) -> str:
    """The name of a scene on the page."""
    return name.replace("_", " ").capitalize()


def _scene_of(row: str) -> str:
    return row.removeprefix("| ").partition(" |")[0]


def _row(name: str, one: Figure) -> str:
    bound = f"{one.bound} **not kept**".lstrip() if one.held is False else one.bound
    return f"| {' | '.join((title(name), one.name, one.figure, one.baseline, one.ratio, bound))} |"


def _summary(figures: Sequence[Figure]) -> Sequence[Figure]:
    """Return the last of those under one bound, and all that break theirs or could not be taken."""
    last = {one.bound or one.name: one for one in figures if one.held is not None}
    shown = [one for one in figures if one.held is False or one in last.values()]
    return shown or [one for one in figures if one.figure == NOT_MEASURED]


def write(results: Mapping[str, Sequence[Figure]], *, whole: bool) -> None:
    """Write the page, or the rows of these benchmarks alone."""
    PAGE.write_text(text(results) if whole else changed(PAGE.read_text("utf-8"), results), "utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
