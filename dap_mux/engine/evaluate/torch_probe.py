"""What is evaluated in a rank to learn what torch knows there; see `injected.torch_state`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dap_mux.injected import source_of, torch_state

_SOURCE: Final = source_of(torch_state)
COMPILED: Final = "torch.compile has compiled"  # in a breakpoint's message
MESHES: Final = f"(lambda s: (exec({_SOURCE!r}, s), s['meshes']())[1])({{}})"


def look(places: Sequence[tuple[str, int]], wants_mesh: bool) -> str:
    """Return an expression for `torch_state.look`."""
    call = f"s['look']({list(places)!r}, {wants_mesh!r})"
    return f"(lambda s: (exec({_SOURCE!r}, s), {call})[1])({{}})"


def compiled(places: Sequence[tuple[str, int]]) -> str:
    """Return an expression for `torch_state.compiled`."""
    call = f"s['compiled']({list(places)!r})"
    return f"(lambda s: (exec({_SOURCE!r}, s), {call})[1])({{}})"


def why_it_does_not_stop(function: str, root: str) -> str:
    """Return what a breakpoint in a compiled function says; `root`: what it is inlined into."""
    into = f" into {root}" if root else ""
    return (
        f"{COMPILED} {function}{into}, and compiled code does not stop: start the job with "
        "TORCH_COMPILE_DISABLE=1, or put @torch.compiler.disable before the function"
    )
