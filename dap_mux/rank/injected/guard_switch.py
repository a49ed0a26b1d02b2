"""Has a rank stop at wrong numbers, where dap-mux is installed beside its program."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

COMM = "dap_mux.rank.comm."


def switch(guard: str, on: bool, options: dict[str, Any]) -> str:
    """Begin or end what a module guards; return as JSON the `problem`, "" for none.

    Raises nothing. `options`: of its `arm`.
    """
    return json.dumps({"problem": _problem(guard, on, options)})


def _problem(guard: str, on: bool, options: dict[str, Any]) -> str:
    try:
        module: Any = import_module(COMM + guard)
        if on:
            return str(module.arm(**options))
        module.disarm()
    except ImportError as error:
        return f"its Python cannot import dap-mux, which this needs ({error})"
    except Exception as error:  # noqa: BLE001  (private parts of torch; the job goes on)
        return f"{type(error).__name__}: {error}"
    return ""


def look(until: int | None) -> str:
    """Have it wait after its step; return as JSON what it has had until a step."""
    live = import_module(COMM + "live").live()
    return json.dumps(live.look(until) if live is not None else {})


def go(
    stop: int,
    text: str,
    sets: dict[str, list[str]] | None,
    others: str,
    compared: dict[str, str],
) -> str:
    """Have it run on, to stop after a step or not; `sets`: the parameters of each new set."""
    live = import_module(COMM + "live").live()
    if live is not None:
        if sets is not None:
            live.sets = {name: key for key, names in sets.items() for name in names}
            live.others = others
        live.go(stop, text, compared)
    return "{}"
