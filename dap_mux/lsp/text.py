"""What is shown of ranks: the mark behind a line, and values across ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dap_mux.lsp.picture import Standing
from dap_mux.printable import one_line

_LONGEST_MARK: Final = 40  # characters of ranks behind a line
_LONGEST_VALUE: Final = 300  # characters of one value
_MOST_VALUES: Final = 12  # distinct values of one hover
_NUMBERS: Final = ("min", "max", "mean", "std")
_COUNTS: Final = ("nan", "inf")


def mark(standing: Standing) -> str:
    """Return `● 0-3,7`, with many pieces the first of them and how many there are."""
    ranks = standing.label
    if len(ranks) > _LONGEST_MARK:
        ranks = f"{ranks[:_LONGEST_MARK].rsplit(',', 1)[0]},… ({len(standing.ids)})"
    return f"● {ranks}"


def why(standing: Standing) -> str:
    """Return who stands there and why, for a tooltip."""
    several = "s" if len(standing.ids) > 1 else ""
    return one_line(f"stopped here ({', '.join(standing.reasons)}): rank{several} {standing.label}")


def values(expression: str, body: Mapping[str, Any], *, markdown: bool) -> str | None:
    """Return the answer of `compare` as a hover's text; None where no rank has a value."""
    if not body["values"]:
        return None
    lines = [*_values(expression, body), *_statistics(body["statistics"]), *_others(body)]
    if not markdown:
        return "\n".join(lines)
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return "\n".join([f"{fence}text", *lines, fence])


def _values(expression: str, body: Mapping[str, Any]) -> list[str]:
    found = body["values"]
    shown = [f"  {{{one['ranks']}}}: {_short(one['value'])}" for one in found[:_MOST_VALUES]]
    if len(found) > _MOST_VALUES:
        shown.append(f"  … and {len(found) - _MOST_VALUES} more values")
    if len(shown) == 1:
        return [f"{_short(expression)}  {shown[0].strip()}"]
    return [_short(expression), *shown]


def _statistics(statistics: Mapping[str, Any] | None) -> list[str]:
    if statistics is None or statistics["min"] == statistics["max"]:
        return []
    parts = [f"{name} {statistics[name]:.6g}" for name in _NUMBERS if statistics[name] is not None]
    parts += [f"{name} {statistics[name]}" for name in _COUNTS if statistics[name]]
    return [" · ".join(parts)]


def _others(body: Mapping[str, Any]) -> list[str]:
    lines = [f"outliers: {body['outliers']}"] if body["outliers"] else []
    lines += [f"  {{{one['ranks']}}}: {_short(one['message'])}" for one in body["errors"]]
    if body["missing"]:
        lines.append(f"no answer from {body['missing']}")
    return lines


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST_VALUE else f"{line[:_LONGEST_VALUE]}…"
