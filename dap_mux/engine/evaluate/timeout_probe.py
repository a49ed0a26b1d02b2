"""What is evaluated in a rank about its time-outs: functions of `injected.timeout_probe`.

`source` is that module's.
"""

from __future__ import annotations

from dap_mux.engine.injected_sources import call
from dap_mux.insight.clocks import LONG


def look(source: str, *, extends: bool) -> str:
    """Return the expression whose value `clocks` reads; `extends`: raise what is too short."""
    return call(source, "look", str(LONG if extends else 0))


def put_back(source: str) -> str:
    """Return the expression that undoes `look(extends=True)`; its value: how many time-outs."""
    return call(source, "put_back")
