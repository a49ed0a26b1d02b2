"""Has a rank tell what its parameters are, where dap-mux is installed beside its program."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

LIVE = "dap_mux.rank.comm.live"


def switch(tells: bool) -> str:
    """Begin or end that; return as JSON the `problem`, "" for none. Raises nothing."""
    return json.dumps({"problem": _problem(tells)})


def _problem(tells: bool) -> str:
    try:
        module: Any = import_module(LIVE)
        if tells:
            return str(module.arm())
        module.disarm()
    except ImportError as error:
        return f"its Python cannot import dap-mux, which this needs ({error})"
    except Exception as error:  # noqa: BLE001  (private parts of torch; the job goes on)
        return f"{type(error).__name__}: {error}"
    return ""


def look(until: int | None) -> str:
    """Have it wait after its step; return as JSON what it has had until a step."""
    live = import_module(LIVE).live()
    return json.dumps(live.look(until) if live is not None else {})


def go(stop: int, text: str, sets: dict[str, list[str]] | None, others: str) -> str:
    """Have it run on, to stop after a step or not; `sets`: the parameters of each new set."""
    live = import_module(LIVE).live()
    if live is not None:
        if sets is not None:
            live.sets = {name: key for key, names in sets.items() for name in names}
            live.others = others
        live.go(stop, text)
    return "{}"
