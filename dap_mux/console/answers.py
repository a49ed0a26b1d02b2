"""What many ranks answered, in lines: `{0-3,5-7}: 2.31 | *{4}: nan`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dap_mux.console.screen import Screen
from dap_mux.console.tables import Table
from dap_mux.printable import one_line

Body = Mapping[str, Any]
ONE_LINE: Final = 100  # characters that still read well side by side
_BARS: Final = "▁▂▃▄▅▆▇█"


def show_cast(screen: Screen, body: Body, *, alone: bool = False) -> None:
    """Show the answer of `cast`; `alone`: one rank was asked, so it need not be named."""
    results = [one for one in body["results"] if one["value"]]
    if alone and len(results) == 1:
        screen.say(results[0]["value"])
    elif results:
        _side_by_side(screen, results)
    _show_failures(screen, body, alone=alone)


def _show_failures(screen: Screen, body: Body, *, alone: bool = False) -> None:
    """Say who failed and why, and who did not answer."""
    for error in body["errors"]:
        who = "" if alone else f"{{{error['ranks']}}}: "
        screen.say(f"{who}{error['message']}", "error")
    if body["missing"]:
        screen.say(f"no answer from {body['missing']}", "error")


def marked(answers: Sequence[Body]) -> list[str]:
    """`{0-3}: 2.31` for each answer; where most ranks agree, a star before the other answers."""
    most = len(answers) > 1 and count(answers[0]["ranks"]) > count(answers[1]["ranks"])
    return [
        f"{'*' if most and place else ''}{{{one['ranks']}}}: {one['value']}"
        for place, one in enumerate(answers)
    ]


def count(ranks: str) -> int:
    """How many ranks a folded set names: 5 for `0-3,7`, also in groups (`actor:0-3; eval:1`)."""
    runs = re.findall(r"(?:^|[,;:/])\s*(\d+)(?:-(\d+))?(?=\s*(?:[,;]|$))", ranks)
    return sum(int(last or first) - int(first) + 1 for first, last in runs)


def _side_by_side(screen: Screen, answers: Sequence[Body]) -> None:
    texts = marked(answers)
    line = " | ".join(texts)
    if len(line) <= ONE_LINE and "\n" not in line:
        screen.say(line)
        return
    for text, answer in zip(texts, answers, strict=True):
        if "\n" in answer["value"]:
            head, _, rest = text.partition(": ")
            text = f"{head}:\n{rest}"  # noqa: PLW2901
        screen.say(text, "odd" if text.startswith("*") else "")


def show_compare(screen: Screen, body: Body) -> None:
    """Show the answer of `compare`: the values, what they have in common, who is off."""
    rows = tuple((one["ranks"], one_line(str(one["value"]))) for one in body["values"])
    if rows:
        screen.table(Table(("Ranks", "Value"), rows))
    if body["statistics"]:
        screen.say(statistics(body["statistics"]))
    if body["outliers"]:
        screen.say(f"outliers: {body['outliers']}", "odd")
    _show_failures(screen, body)


def statistics(numbers: Body) -> str:
    """`min 1 · max 4 · mean 2.5 · std 1.1 · ▁█▁`."""
    parts = [f"{name} {_number(numbers[name])}" for name in ("min", "max", "mean", "std")]
    parts += [f"{numbers[name]} {name}" for name in ("nan", "inf") if numbers[name]]
    bars = sparkline(numbers.get("histogram"))
    return " · ".join([*parts, bars] if bars else parts)


def sparkline(histogram: object) -> str:
    """One character for each bin, as high as its count."""
    counts = histogram.get("counts") if isinstance(histogram, Mapping) else histogram
    if not isinstance(counts, Sequence) or not counts or not max(counts):
        return ""
    top = max(counts)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // top)] for count in counts)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
