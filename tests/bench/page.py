"""docs/performance.md, made of a run of all benchmarks: every figure beside its baseline."""

from __future__ import annotations

import importlib
import inspect
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.figures import Figure

PAGE: Final = Path(__file__).resolve().parents[2] / "docs/performance.md"
# Each scene, by the file in which it is a function: its docstring is its text on the page.
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
    "further": "many_ranks",
    "growth": "growth",
    "startup": "startup",
    "differ": "evaluate",
    "stacks": "many_ranks",
    "stacks_view": "windows",
}
HEAD: Final = """\
# Performance

`make bench` measures what is promised here, each figure beside a baseline in the same run, and
fails where a bound is broken. `make performance` writes this page; no figure on it is written by
hand. Times are medians and depend on the machine: compare ratios. Of several figures under one
bound this page has one, and `make bench` prints all. Measured with {cores} cores, Python {python}.
"""
COLUMNS: Final = ("what", "dap-mux", "beside", "ratio", "bound", "")


def scene(name: str) -> Callable[[], Iterable[Figure]]:
    """Import a scene."""
    found: Callable[[], Iterable[Figure]]
    found = getattr(importlib.import_module(f"tests.bench.{BENCHMARKS[name]}"), name)
    return found


def text(results: Mapping[str, Sequence[Figure]]) -> str:
    """Return the page; `results` by the name of their benchmark."""
    head = HEAD.format(cores=os.cpu_count(), python=platform.python_version())
    return _page(head, {_title(name): _section(name, found) for name, found in results.items()})


def changed(page: str, results: Mapping[str, Sequence[Figure]]) -> str:
    """Return the page with these benchmarks' sections made anew; each is of one run."""
    head, *sections = page.split("\n## ")
    kept = {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}
    return _page(head, kept | {_title(name): _section(name, one) for name, one in results.items()})


def _page(head: str, sections: Mapping[str, str]) -> str:
    parts = [head, *(f"## {title}\n\n{body.strip()}" for title, body in sections.items())]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _section(name: str, figures: Sequence[Figure]) -> str:
    return f"{inspect.getdoc(scene(name))}\n\n{_table(figures)}"


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _table(figures: Sequence[Figure]) -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [
        (one.name, one.figure, one.baseline, one.ratio, one.bound, _verdict(one))
        for one in _summary(figures)
    ]
    return "\n".join(f"| {' | '.join(cell for cell in row)} |" for row in rows)


def _summary(figures: Sequence[Figure]) -> Sequence[Figure]:
    """Return the last of those under one bound, and all that break theirs; all if none has one."""
    last = {one.bound or one.name: one for one in figures if one.held is not None}
    shown = [one for one in figures if one.held is False or one in last.values()]
    return shown or figures


def _verdict(figure: Figure) -> str:
    return {True: "kept", False: "**not kept**", None: ""}[figure.held]


def write(results: Mapping[str, Sequence[Figure]], *, whole: bool) -> None:
    """Write the page, or the sections of these benchmarks alone."""
    PAGE.write_text(text(results) if whole else changed(PAGE.read_text("utf-8"), results), "utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
