"""Where a console writes, and how responses read: on a terminal, or as plain lines.

All text that is shown passes through here, and control characters in it are escaped: the output
of ranks must never control the user's terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import PurePath
from typing import Any, Final, Protocol

from dap_mux.frontends.console.session_client import place
from dap_mux.pure.printable import one_line, printable
from dap_mux.pure.rank_sets import with_group
from dap_mux.pure.rank_sets.rank_rows import (
    COLUMNS,
    FOLD_ABOVE,
    Row,
    classes,
    id_of,
    qualified_function,
    reason,
)
from dap_mux.pure.rank_sets.world import label
from dap_mux.pure.rank_values import (
    SEPARATOR,
    WARNING,
    RankValue,
    marked,
    outliers_first,
    side_by_side,
)

PLACE: Final = "Place"
_PADDING: Final = 2  # around heads, as in Monarch's tables
STYLES: Final = {
    "title": "bold",
    "note": "cyan",
    "error": "red",
    "held": "red",
    "place": "bold",
    "quiet": "dim",
    "odd": "yellow",
}
STATE_STYLES: Final = {"stopped": "yellow", "running": "green", "lost": "red", "exited": "dim"}


@dataclass(frozen=True)
class Table:
    """Cells of text; the columns whose indices are in `right` hold numbers.

    `narrow`: the same for a terminal that is not wide enough.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    narrow: Table | None = None

    @property
    def width(self) -> int:
        """Columns of a terminal that it takes, with its lines."""
        columns = zip(self.head, *self.rows, strict=True)
        return sum(max(map(len, column)) + 3 for column in columns) + 1

    def without(self, index: int) -> Table:
        """Return it without a column."""
        rows = tuple((*row[:index], *row[index + 1 :]) for row in self.rows)
        right = frozenset(each - (each > index) for each in self.right - {index})
        return Table((*self.head[:index], *self.head[index + 1 :]), rows, right)


def fitted(table: Table, width: int) -> Table:
    """Return a table that fits as far as can be: first without what is empty or always the same."""
    if table.width <= width or table.narrow is None:
        return table
    shown = table.narrow
    while shown.width > width and (spare := _spare(shown)) is not None:
        shown = shown.without(spare)
    return shown


def _spare(table: Table) -> int | None:
    """Return the column that tells least, None where all do."""
    values = [set(column) for column in zip(*table.rows, strict=True)]
    kept = {"Rank", "Ranks", PLACE, *(("Reason",) if len(table.rows) == 1 else ())}
    same = [at for at, each in enumerate(values) if len(each) == 1 and table.head[at] not in kept]
    return next((at for at in same if values[at] == {""}), next(iter(same), None))


class Screen(Protocol):
    """A place to show text; `style` is "" or one of `STYLES`; error: a command has failed."""

    def say(self, text: str, style: str = "") -> None:
        """Show lines."""

    def table(self, table: Table) -> None:
        """Show a table."""


class PlainScreen:
    """Lines and grids for pipes, `nc` and scripts."""

    def __init__(
        self, write: Callable[[str], object], write_error: Callable[[str], object] | None = None
    ) -> None:
        """`write_error`: for what goes wrong, by default `write`."""
        self._write = write
        self._write_error = write_error or write

    def say(self, text: str, style: str = "") -> None:
        """Show lines, without any style."""
        write = self._write_error if style == "error" else self._write
        write(printable(text) + "\n")

    def table(self, table: Table) -> None:
        """Show a table with Monarch's lines."""
        self._write(grid(table) + "\n")


def grid(table: Table) -> str:
    """Draw a table with the same characters as Monarch."""
    columns = zip(table.head, *table.rows, strict=True)
    widths = [max(len(column[0]) + _PADDING, *map(len, column)) for column in columns]
    cells = (f"%{width if at in table.right else -width}s" for at, width in enumerate(widths))
    rule, double = _rule(widths, "-"), _rule(widths, "=")
    line = f"| {' | '.join(cells)} |\n"
    rows = [line % row + rule for row in table.rows]
    return "\n".join([rule, line % table.head + double, *rows])


def _rule(widths: Iterable[int], dash: str) -> str:
    return "+" + "+".join(dash * (width + 2) for width in widths) + "+"


class RichScreen:
    """Colour, and tables with drawn lines, by rich: imported here, for that takes its time.

    It prints to the current `sys.stdout`, because prompt_toolkit replaces it.
    """

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415

        self._console = Console(highlight=False, markup=False, emoji=False)

    def say(self, text: str, style: str = "") -> None:
        """Show lines; long ones wrap."""
        from rich.text import Text  # noqa: PLC0415

        shown = Text(printable(text), style=STYLES.get(style, ""))
        self._console.print(shown, soft_wrap=True)

    def table(self, table: Table) -> None:
        """Draw a table as wide as the terminal allows."""
        from rich import box  # noqa: PLC0415
        from rich.table import Table as DrawnTable  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = fitted(table, self._console.width)
        drawn = DrawnTable(box=box.ROUNDED, header_style="bold")
        for index, head in enumerate(table.head):
            drawn.add_column(head, justify="right" if index in table.right else "left")
        for row in table.rows:
            drawn.add_row(*(Text(cell, style=STATE_STYLES.get(cell, "")) for cell in row))
        self._console.print(drawn)


def screen_for_stdout(*, errors_apart: bool = False) -> Screen:
    """Return the screen that fits standard output.

    `errors_apart`: without a terminal, errors go to standard error.
    """
    if is_terminal():
        return RichScreen()
    return PlainScreen(_print, _print_error if errors_apart else None)


def _print(text: str) -> None:
    """Write to standard output and flush: a reader at the other end of a pipe waits for it."""
    print(text, end="", flush=True)  # noqa: T201


def _print_error(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def is_terminal() -> bool:
    """Whether standard output is a terminal that supports cursor movement."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


Body = Mapping[str, Any]
MAX_LINE_LENGTH: Final = 100  # longer results get a line each
IN_MAIN: Final = "running, so evaluated in __main__, or in its function where that lacks a name"
_BARS: Final = "▁▂▃▄▅▆▇█"
MAIN: Final = "MainThread"
INDENT: Final = "  "


def show_cast(screen: Screen, body: Body, *, single: bool = False) -> None:
    """Show the response of `cast`; `single`: it went to one rank, which need not be named."""
    results = [result for result in body["results"] if result["value"]]
    if single and len(results) == 1:
        screen.say(results[0]["value"])
    elif results:
        _side_by_side(screen, results)
    if body.get("inMain"):
        ranks = "" if single else f"{{{body['inMain']}}}: "
        screen.say(f"{ranks}{IN_MAIN}", "note")
    _show_failures(screen, body, single=single)


def _show_failures(screen: Screen, body: Body, *, single: bool = False) -> None:
    """Show which ranks failed and why, and which did not respond."""
    for error in body["errors"]:
        ranks = "" if single else f"{{{error['ranks']}}}: "
        screen.say(f"{ranks}{error['message']}", "error")
    if body["missing"]:
        screen.say(f"no response from {body['missing']}", "error")


def _side_by_side(screen: Screen, results: Sequence[Body]) -> None:
    values = _values(results)
    texts = side_by_side(values)
    line = SEPARATOR.join(texts)
    if len(line) <= MAX_LINE_LENGTH and "\n" not in line:
        screen.say(line)
        return
    for text in texts:
        head, _, value = text.partition(": ")
        shown = f"{head}:\n{value}" if "\n" in value else text
        screen.say(shown, "odd" if text.startswith(WARNING) else "")


def _values(results: Iterable[Body]) -> list[RankValue]:
    return [RankValue(one["ranks"], str(one["value"]), one["outlier"]) for one in results]


def show_compare(screen: Screen, body: Body) -> None:
    """Show the response of `compare`: whole values, outliers first, and statistics."""
    rows = tuple(
        (marked(one), one_line(one.value)) for one in outliers_first(_values(body["values"]))
    )
    if rows:
        screen.table(Table(("Ranks", "Value"), rows))
    if body["statistics"]:
        screen.say(statistics(body["statistics"]))
    _show_failures(screen, body)


def statistics(numbers: Body) -> str:
    """Return `min 1 · max 4 · mean 2.5 · std 1.1 · ▁█▁`."""
    parts = [f"{name} {_number(numbers[name])}" for name in ("min", "max", "mean", "std")]
    parts += [f"{numbers[name]} {name}" for name in ("nan", "inf") if numbers[name]]
    bars = sparkline(numbers.get("histogram"))
    return " · ".join([*parts, bars] if bars else parts)


def sparkline(histogram: object) -> str:
    """Return one character for each bin, as high as its count."""
    counts = histogram.get("counts") if isinstance(histogram, Mapping) else histogram
    if not isinstance(counts, Sequence) or not counts or not max(counts):
        return ""
    top = max(counts)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // top)] for count in counts)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


# `stacks`: a branch begins with its ranks, innermost frames come last


def show_stacks(screen: Screen, body: Body, *, library: bool = False) -> None:
    """Show the tree of each thread. `library`: also the frames of libraries, one by one."""
    for thread in body["threads"]:
        if thread["name"] != MAIN:
            screen.say(f"{thread['name']}:", "title")
        for branch in thread["branches"]:
            screen.say("\n".join(_branch(branch, 0, library=library)))
    for one in body["missing"]:
        screen.say(f"{{{one['ranks']}}}: {one['message']}", "error")
    if not body["threads"] and not body["missing"]:
        screen.say("no ranks")


def _branch(branch: Body, depth: int, *, library: bool) -> Iterator[str]:
    indent = INDENT * depth
    yield f"{indent}{{{branch['ranks']}}}"
    for line in _frames(_shown(branch["frames"], depth, library=library), library=library):
        yield f"{indent}{INDENT}{line}"
    if branch["ends"]:
        yield f"{indent}{INDENT}{_end(branch)}"
    for inner in branch["branches"]:
        yield from _branch(inner, depth + 1, library=library)


def _shown(frames: list[Body], depth: int, *, library: bool) -> list[Body]:
    """Leave out what has called the program, as `runpy` does, unless there is nothing else."""
    if depth or library:
        return frames
    own = next((at for at, frame in enumerate(frames) if not frame["library"]), 0)
    return frames[own:]


def _end(branch: Body) -> str:
    """Name the ranks whose innermost frame this is, and those of them that are stopped."""
    some = f"{{{branch['ends']}}} " if branch["ends"] != branch["ranks"] else ""
    stopped = branch["stopped"]
    if not stopped:
        return f"└ {some}running"
    return (
        f"└ {some}stopped"
        if stopped == branch["ends"]
        else f"└ {some}running; {{{stopped}}} stopped"
    )


def _frames(frames: Iterable[Body], *, library: bool) -> Iterator[str]:
    """Fold frames of libraries that call each other into the innermost of them."""
    for of_library, group in groupby(frames, lambda frame: bool(frame["library"])):
        together = [*group]
        if of_library and not library and len(together) > 1:
            yield f"… {len(together)} library frames, the innermost {_frame(together[-1])}"
        else:
            yield from map(_frame, together)


def _frame(frame: Body) -> str:
    name = PurePath(frame["path"]).name if "/" in frame["path"] else frame["path"]
    return f"{frame['name']}  {name}:{frame['line']}"


# `why`: the sentence first, the evidence, then the command that helps


def show_verdict(screen: Screen, body: Body) -> None:
    """Show what keeps the job from moving on."""
    style = "plain" if body["verdict"] == "healthy" else "title"
    screen.say(f"{body['verdict']}: {body['sentence']}", style)
    for line in body["evidence"]:
        screen.say(f"  {line}")
    if body["next"]:
        screen.say(f"  try: {body['next']}")


# `list`: Monarch's columns, one row for each rank or for each class

LAYOUTS: Final = ("classes", "full")
CLASS_COLUMNS: Final = (COLUMNS[0], "Ranks", "Count", *COLUMNS[4:])


def parse_list_arguments(rest: str, default: str) -> tuple[str, str]:
    """Return the rank set, and the layout: "classes", "full" or ""."""
    if not rest:
        return default, ""
    arguments = rest.split()
    layout = next(
        (arguments.pop(end) for end in (0, -1) if arguments and arguments[end] in LAYOUTS), ""
    )
    return with_group(" ".join(arguments)) or default, layout


def ranks_table(rows: Sequence[Row], layout: str = "") -> Table:
    """Lay ranks out; with the layout "", more than `FOLD_ABOVE` of them are folded."""
    if layout == "classes" or (layout != "full" and len(rows) > FOLD_ABOVE):
        folded = classes(rows)
        cells = tuple(map(_class_cells, folded))
        table = Table(CLASS_COLUMNS, cells, frozenset({2, 4}))
        return replace(table, narrow=_narrow(table, [members[0] for members in folded]))
    table = Table(COLUMNS, tuple(map(_cells, rows)), frozenset({1, 5}))
    return replace(table, narrow=_narrow(table, rows))


def _narrow(table: Table, rows: Sequence[Row]) -> Table:
    """Return the table with function and line in one column, as a place."""
    at = table.head.index("Function")
    places = [one_line(place(row) or qualified_function(row)) for row in rows]
    cells = tuple(
        (*row[:at], where, *row[at + 2 :]) for row, where in zip(table.rows, places, strict=True)
    )
    return Table((*table.head[:at], PLACE, *table.head[at + 2 :]), cells, table.right - {at + 1})


def _class_cells(members: list[Row]) -> tuple[str, ...]:
    cells = _cells(members[0])
    ranks = label(id_of(row) for row in members)
    return (cells[0], ranks, str(len(members)), *cells[4:])


def _cells(row: Row) -> tuple[str, ...]:
    actor = row.get("actor")
    shown, name = (actor, actor["name"]) if actor else (row, row["group"])
    number = str(shown["rank"]) if row["worker"] is None else f"{shown['rank']}/{row['worker']}"
    line = "" if row["line"] is None else str(row["line"])
    place = str(shown["coords"] or ""), row["host"] or "", qualified_function(row), line
    cells = name, number, *place, row["state"], reason(row)
    return cells if "".join(cells).isprintable() else tuple(map(one_line, cells))
