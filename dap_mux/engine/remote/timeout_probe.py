"""Expressions that read and change a rank's time-outs, by `injected.timeout_probe`.

`source` is the source of that module.
"""

from __future__ import annotations

from dap_mux.engine.remote.injected_sources import call
from dap_mux.insight.timeouts import RAISED_TIMEOUT_S


def look(source: str, *, extends: bool) -> str:
    """Return the expression whose value `read_report` reads; `extends`: raise what is too short."""
    return call(source, "look", str(RAISED_TIMEOUT_S if extends else 0))


def put_back(source: str) -> str:
    """Return the expression that undoes `look(extends=True)`; its value: how many time-outs."""
    return call(source, "put_back")
