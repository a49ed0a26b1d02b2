"""The results of many ranks as text: `⚠ {4}: nan | {0-3,5-7}: 2.31`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dap_mux.console.screen import Screen
from dap_mux.console.tables import Table
from dap_mux.printable import one_line
from dap_mux.rank_values import (
    SEPARATOR,
    WARNING,
    RankValue,
    marked,
    outliers_first,
    side_by_side,
)

Body = Mapping[str, Any]
MAX_LINE_LENGTH: Final = 100  # longer results get a line each
IN_MAIN: Final = "running, so evaluated in __main__, or in its function where that lacks a name"
_BARS: Final = "▁▂▃▄▅▆▇█"


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
