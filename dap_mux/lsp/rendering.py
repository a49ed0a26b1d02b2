"""Text to show for ranks: the mark at the end of a line, and values across ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dap_mux.lsp.rank_state import StoppedRanks
from dap_mux.printable import one_line
from dap_mux.rank_values import RankValue, side_by_side

_MAX_MARK_LENGTH: Final = 40
_MAX_VALUE_LENGTH: Final = 300
_MAX_VALUES: Final = 12
_NUMBERS: Final = ("min", "max", "mean", "std")
_COUNTS: Final = ("nan", "inf")


def mark(standing: StoppedRanks) -> str:
    """Return `● 0-3,7`; a long list is cut and followed by the number of ranks."""
    ranks = standing.label
    if len(ranks) > _MAX_MARK_LENGTH:
        ranks = f"{ranks[:_MAX_MARK_LENGTH].rsplit(',', 1)[0]},… ({len(standing.ids)})"
    return one_line(f"● {ranks}")


def why(standing: StoppedRanks) -> str:
    """Return which ranks are stopped there and why, for a tooltip."""
    several = "s" if len(standing.ids) > 1 else ""
    return one_line(f"stopped here ({', '.join(standing.reasons)}): rank{several} {standing.label}")


def values(expression: str, body: Mapping[str, Any], *, markdown: bool) -> str | None:
    """Return the response of `compare` as the text of a hover; None if no rank has a value."""
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
    found = [
        RankValue(one["ranks"], _short(one["value"]), one["outlier"]) for one in body["values"]
    ]
    shown = [f"  {line}" for line in side_by_side(found)[:_MAX_VALUES]]
    if len(found) > _MAX_VALUES:
        shown.append(f"  … and {len(found) - _MAX_VALUES} more values")
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
    lines = [f"  {{{one['ranks']}}}: {_short(one['message'])}" for one in body["errors"]]
    if body["missing"]:
        lines.append(f"no response from {body['missing']}")
    return lines


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _MAX_VALUE_LENGTH else f"{line[:_MAX_VALUE_LENGTH]}…"
