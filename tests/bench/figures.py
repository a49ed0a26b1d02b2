"""What a benchmark says: its figure beside its baseline, and the bound between the two."""

from __future__ import annotations

import os
from dataclasses import dataclass

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Figure:
    """One line of the report. `held` is None where there is no bound: told, not judged."""

    name: str
    figure: str
    baseline: str = ""
    ratio: str = ""
    bound: str = ""
    held: bool | None = None

    def line(self) -> str:
        """Return the line as people read it."""
        verdict = {True: "ok", False: "BROKEN", None: ""}[self.held]
        columns = [f"{self.name:<34}", f"{self.figure:>16}", f"{self.baseline:>26}"]
        return "  ".join([*columns, f"{self.ratio:>14}", f"{self.bound:<16}", verdict]).rstrip()


def at_most(name: str, value: float, baseline: float, bound: float, what: str) -> Figure:
    """`value` and `baseline` in seconds; the first may be `bound` times the second."""
    ratio = value / baseline
    return _beside(
        name, value, (baseline, what), f"{ratio:.2f} x", f"<= {bound:g} x", ratio <= bound
    )


def faster(name: str, value: float, baseline: float, bound: float, what: str) -> Figure:
    """`value` and `baseline` in seconds; the first must be `bound` times faster."""
    ratio = baseline / value
    told, least = f"{ratio:.0f} x faster", f">= {bound:g} x faster"
    return _beside(name, value, (baseline, what), told, least, ratio >= bound)


def ahead(name: str, value: float, baseline: float, what: str) -> Figure:
    """`value` and `baseline` in seconds; the first must be the smaller one."""
    ratio = value / baseline
    return _beside(name, value, (baseline, what), f"{ratio:.2f} x", "< 1 x", ratio < 1)


def _beside(
    name: str, value: float, baseline: tuple[float, str], ratio: str, bound: str, held: bool
) -> Figure:
    seconds, what = baseline
    return Figure(name, shown(value), f"{shown(seconds)} {what}", ratio, bound, held)


def not_measured(name: str, why: str) -> Figure:
    """What this machine lacks: no verdict, and a failure where nothing may be lacking."""
    lacking = False if os.environ.get("DAP_MUX_REQUIRE_ALL") == "1" else None
    return Figure(name, NOT_MEASURED, why, held=lacking)


def within(name: str, value: float, bound: float) -> Figure:
    """`value` and `bound` in seconds."""
    return Figure(name, shown(value), bound=f"<= {shown(bound)}", held=value <= bound)


def counted(name: str, number: int, bound: int) -> Figure:
    """So many, and at most `bound`."""
    return Figure(name, str(number), bound=f"<= {bound}", held=number <= bound)


def shown(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"
