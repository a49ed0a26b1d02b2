"""A condition on a line that runs so often that evaluating it slows the rank down."""

from __future__ import annotations

from typing import Final

from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations
from dap_mux.doctor.snapshot import SessionSnapshot

CAUSE: Final = "condition-cost"
EVALUATION_COST_S: Final = 5e-6  # of one evaluation, with its overhead (make bench)
COST_THRESHOLD: Final = 0.1  # share of the rank's time
# The expensive conditions, as ranks measure them (dap_mux/injected/conditions.py).
RATE_EXPRESSION: Final = (
    "[(line, b.condition, round(cost.rate))"
    " for db in [__import__('pydevd').get_global_debugger()]"
    " for path, lines in db.breakpoints.items() for line, b in lines.items()"
    " for cost in [getattr(b, 'dap_mux_cost', None)]"
    f" if cost is not None and cost.rate * {EVALUATION_COST_S} > {COST_THRESHOLD}]"
)


async def examine(observed: Observations) -> list[Finding]:
    """Check every breakpoint with a condition, in the ranks that have it."""
    found: list[Finding] = []
    for snapshot in observed.snapshots:
        if any(one["condition"] for one in snapshot.breakpoints):
            for ranks, dear in (await snapshot.ask(RATE_EXPRESSION)).items():
                if isinstance(dear, list):
                    found += [_finding(snapshot, ranks, *one) for one in dear]
    return found


def _finding(
    snapshot: SessionSnapshot, ranks: str, line: int, condition: str, rate: int
) -> Finding:
    paths = {one["path"] for one in snapshot.breakpoints if one["line"] == line}
    where = f"{paths.pop() if len(paths) == 1 else 'line'}:{line}"
    share = min(rate * EVALUATION_COST_S, 0.99)
    return Finding(
        CAUSE,
        f"the condition of {where} slows the program down: its line runs very often",
        (
            (
                f"{condition!r} is evaluated {rate:,} times a second, at about "
                f"{EVALUATION_COST_S * 1e6:g} µs: {share:.0%} of the time"
            ),
        ),
        (
            (
                "put the test into the program, where it costs almost nothing "
                f"(`if {condition}: breakpoint()`), or set the breakpoint on another line"
            ),
        ),
        ranks=ranks,
        where=where,
    )
