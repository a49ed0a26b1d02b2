"""Has a rank stop at values that are not finite, where dap-mux is installed beside its program."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

GUARD = "dap_mux.rank.comm.not_finite"


def switch(stops: bool, locates: bool) -> str:
    """Begin or end that; return as JSON the `problem`, "" for none. Raises nothing."""
    return json.dumps({"problem": _problem(stops, locates)})


def _problem(stops: bool, locates: bool) -> str:
    try:
        guard: Any = import_module(GUARD)
        if stops:
            return str(guard.arm(locates=locates))
        guard.disarm()
    except ImportError as error:
        return f"its Python cannot import dap-mux, which this needs ({error})"
    except Exception as error:  # noqa: BLE001  (private parts of torch; the job goes on)
        return f"{type(error).__name__}: {error}"
    return ""
