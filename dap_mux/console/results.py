"""The results of many ranks as text: `{0-3,5-7}: 2.31 | *{4}: nan`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dap_mux.console.screen import Screen
from dap_mux.console.tables import Table
from dap_mux.printable import one_line

Body = Mapping[str, Any]
MAX_LINE_LENGTH: Final = 100  # longer results get a line each
_BARS: Final = "▁▂▃▄▅▆▇█"


def show_cast(screen: Screen, body: Body, *, single: bool = False) -> None:
    """Show the response of `cast`; `single`: it went to one rank, which need not be named."""
    results = [result for result in body["results"] if result["value"]]
    if single and len(results) == 1:
        screen.say(results[0]["value"])
    elif results:
        _side_by_side(screen, results)
    _show_failures(screen, body, single=single)


def _show_failures(screen: Screen, body: Body, *, single: bool = False) -> None:
    """Show which ranks failed and why, and which did not respond."""
    for error in body["errors"]:
        ranks = "" if single else f"{{{error['ranks']}}}: "
        screen.say(f"{ranks}{error['message']}", "error")
    if body["missing"]:
        screen.say(f"no response from {body['missing']}", "error")


def marked(results: Sequence[Body]) -> list[str]:
    """Return `{0-3}: 2.31` for each result; if a majority agrees, the others get a star."""
    majority = len(results) > 1 and count(results[0]["ranks"]) > count(results[1]["ranks"])
    return [
        f"{'*' if majority and index else ''}{{{result['ranks']}}}: {result['value']}"
        for index, result in enumerate(results)
    ]


def count(ranks: str) -> int:
    """Count the ranks in a folded set: 5 for `0-3,7`, also with groups (`actor:0-3; eval:1`)."""
    runs = re.findall(r"(?:^|[,;:/])\s*(\d+)(?:-(\d+))?(?=\s*(?:[,;]|$))", ranks)
    return sum(int(last or first) - int(first) + 1 for first, last in runs)


def _side_by_side(screen: Screen, results: Sequence[Body]) -> None:
    texts = marked(results)
    line = " | ".join(texts)
    if len(line) <= MAX_LINE_LENGTH and "\n" not in line:
        screen.say(line)
        return
    for text, result in zip(texts, results, strict=True):
        if "\n" in result["value"]:
            head, _, rest = text.partition(": ")
            text = f"{head}:\n{rest}"  # noqa: PLW2901
        screen.say(text, "odd" if text.startswith("*") else "")


def show_compare(screen: Screen, body: Body) -> None:
    """Show the response of `compare`: the values, statistics and outliers."""
    rows = tuple((each["ranks"], one_line(str(each["value"]))) for each in body["values"])
    if rows:
        screen.table(Table(("Ranks", "Value"), rows))
    if body["statistics"]:
        screen.say(statistics(body["statistics"]))
    if body["outliers"]:
        screen.say(f"outliers: {body['outliers']}", "odd")
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
