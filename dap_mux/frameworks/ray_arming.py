"""Functions that Ray actors run to start and stop listening; they are shipped by value."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dap_mux.frameworks.arming import arm, disarm


def arm_actor(_actor: Any, bundle: bytes) -> dict[str, Any]:
    """Make this actor's process a rank; return what `arm` returns.

    Ray is told the port, as its own `breakpoint()` would otherwise open another.
    """
    import ray  # noqa: PLC0415

    armed = arm(bundle, {})
    import_module("dap_mux.frameworks.ray_threads").trace_methods()  # which `arm` has brought
    ray._private.worker.global_worker.set_debugger_port(armed["port"])  # noqa: SLF001
    return armed


def disarm_actor(_actor: Any, _armed: Any) -> None:
    """Close this actor's port again, and say so to Ray; `_armed`: what `arm_actor` has returned.

    An actor with several threads would overtake a call of that which still goes on.
    """
    import ray  # noqa: PLC0415

    disarm()
    worker = ray._private.worker.global_worker.core_worker.get_worker_id()  # noqa: SLF001
    accessor = ray._private.state.state._connect_and_get_accessor()  # noqa: SLF001
    accessor.update_worker_debugger_port(worker, 0)  # Ray's function takes no 0
