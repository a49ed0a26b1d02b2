"""Changes what a rank's watch on communication looks at, where dap-mux is installed beside it."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

SWITCH = "dap_mux.rank.comm.switch"


def switch(mode: str) -> str:
    """Begin a mode, or none; return as JSON `mode` and `problem`. Raises nothing."""
    problems: list[str] = []

    def fails(text: str) -> None:
        problems.append(text)
        print(f"dap-mux: {text}", file=sys.stderr)  # noqa: T201  (later ones, too)

    try:
        comm: Any = import_module(SWITCH)
    except ImportError as error:
        problem = f"dap-mux is not installed in its Python ({error}): install it there as here"
        return json.dumps({"problem": problem})
    try:
        if mode:
            comm.begin(mode, fails)
    except Exception as error:  # noqa: BLE001  (private parts of torch; the job goes on)
        problems.append(f"{type(error).__name__}: {error}")
    return json.dumps({"mode": comm.mode(), "problem": problems[0] if problems else ""})
