"""dap-mux: one debug session for a distributed Python job, every rank a thread.

In the debugged program: `dap_mux.listen()`, `dap_mux.wait_for_client()` and
`dap_mux.settrace()`. They load debugpy when they are first used, and not before.
"""

from __future__ import annotations

TYPE_CHECKING = False  # its own module would be the dearest part of this import
if TYPE_CHECKING:
    from dap_mux.rank.api import listen as listen
    from dap_mux.rank.api import settrace as settrace
    from dap_mux.rank.api import wait_for_client as wait_for_client

__version__ = "0.1.0"
IN_THE_RANK = ("listen", "settrace", "wait_for_client")


def __getattr__(name: str) -> object:
    if name not in IN_THE_RANK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dap_mux.rank import api  # noqa: PLC0415  (it loads debugpy)

    found: object = getattr(api, name)
    return found
