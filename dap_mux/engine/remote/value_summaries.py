"""Tensors and arrays are summarised in the rank: what comes here is a line, never their data."""

from __future__ import annotations

from dap_mux.engine.remote.injected_sources import call
from dap_mux.engine.remote.python_syntax import is_expression


def summarised(source: str, text: str) -> str:
    """Return an expression for the value of `text`, or for a summary of a tensor or array.

    `source`: that of `injected.tensor_summary`. A summary's `repr` is one line; a tensor of one
    element is its number. It has the type's name, and `shape`, `dtype`, `device`, `norm`, `nan`,
    `inf` as attributes. Of one that is spread over ranks it has `placements`, and the other numbers
    are of its `local` part. Statements stay as they are.
    """
    python = text.replace("$", "_")  # `$rank` and its like are put in later
    return call(source, "seen", f"({text}\n)") if is_expression(python) else text
