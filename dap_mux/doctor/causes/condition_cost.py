"""A condition in a line that runs so often that evaluating it slows the rank down."""

from __future__ import annotations

from typing import Final

from dap_mux.doctor.finding import Finding
from dap_mux.doctor.picture import Picture
from dap_mux.doctor.scene import Scene

CAUSE: Final = "condition-cost"
EACH_S: Final = 5e-6  # what one evaluation takes with all that is around it (make bench)
DEAR: Final = 0.1  # of the rank's time
# What a rank notes of its conditions (dap_mux/injected/conditions.py), those that are dear.
ASK: Final = (
    "[(line, b.condition, round(cost.rate))"
    " for db in [__import__('pydevd').get_global_debugger()]"
    " for path, lines in db.breakpoints.items() for line, b in lines.items()"
    " for cost in [getattr(b, 'dap_mux_cost', None)]"
    f" if cost is not None and cost.rate * {EACH_S} > {DEAR}]"
)


async def examine(scene: Scene) -> list[Finding]:
    """Every breakpoint with a condition, in the ranks that have it."""
    found: list[Finding] = []
    for picture in scene.pictures:
        if any(one["condition"] for one in picture.breakpoints):
            for ranks, dear in (await picture.ask(ASK)).items():
                if isinstance(dear, list):
                    found += [_finding(picture, ranks, *one) for one in dear]
    return found


def _finding(picture: Picture, ranks: str, line: int, condition: str, rate: int) -> Finding:
    paths = {one["path"] for one in picture.breakpoints if one["line"] == line}
    where = f"{paths.pop() if len(paths) == 1 else 'line'}:{line}"
    share = min(rate * EACH_S, 0.99)
    return Finding(
        CAUSE,
        f"the condition of {where} slows the program down: its line runs very often",
        (
            (
                f"{condition!r} is evaluated {rate:,} times a second, at about "
                f"{EACH_S * 1e6:g} µs: {share:.0%} of the time"
            ),
        ),
        (
            (
                "put the test into the program, where it costs next to nothing "
                f"(`if {condition}: breakpoint()`), or set the breakpoint in another line"
            ),
        ),
        ranks=ranks,
        where=where,
    )
