"""Expressions that ask a rank what torch knows there: functions of `injected.torch_state`.

`source` is that module's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dap_mux.engine.remote.injected_sources import call

COMPILED: Final = "torch.compile has compiled"  # in a breakpoint's message


def look(source: str, places: Sequence[tuple[str, int]], wants_mesh: bool) -> str:
    """Return an expression for `torch_state.look`."""
    return call(source, "look", repr(list(places)), repr(wants_mesh))


def compiled(source: str, places: Sequence[tuple[str, int]]) -> str:
    """Return an expression for `torch_state.compiled`."""
    return call(source, "compiled", repr(list(places)))


def meshes(source: str) -> str:
    """Return an expression for `torch_state.meshes`."""
    return call(source, "meshes")


def why_it_does_not_stop(function: str, root: str) -> str:
    """Return what a breakpoint in a compiled function says; `root`: what it is inlined into."""
    into = f" into {root}" if root else ""
    return (
        f"{COMPILED} {function}{into}, and compiled code does not stop: start the job with "
        "TORCH_COMPILE_DISABLE=1, or put @torch.compiler.disable before the function"
    )
