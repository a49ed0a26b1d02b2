"""What ends a job while it is stopped: time-outs of torch's process groups, and the scheduler's."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterable

    Change = tuple[Any, timedelta, timedelta]  # of a backend: the time-out before, and ours

C10D = "torch.distributed.distributed_c10d"
INNER_C10D = "torch._C._distributed_c10d"
DUMPS = ("_dump_nccl_trace_json", "_dump_fr_trace_json")
MAX_COLLECTIVES = 8
"""So many collectives are listed."""


def look(extend_to: float) -> str:
    """Return JSON of the collectives under way, and of the scheduler's limit.

    `extend_to`: the time-out in seconds that shorter ones are raised to; 0: none is changed.
    """
    found: dict[str, Any] = {"before": [], "waiting": [], "problem": ""}
    c10d: Any = sys.modules.get(C10D)
    try:
        if c10d is not None and c10d.is_initialized():
            found["waiting"] = collectives()
            if extend_to:
                found["before"], found["problem"] = extend(c10d, timedelta(seconds=extend_to))
    except Exception as error:  # noqa: BLE001  (private parts of torch)
        found["problem"] = f"{type(error).__name__}: {error}"
    end = os.environ.get("SLURM_JOB_END_TIME", "")
    found["job"] = os.environ.get("SLURM_JOB_ID", "")
    found["left"] = int(end) - time.time() if end.isdigit() else None
    found["elastic"] = "TORCHELASTIC_RUN_ID" in os.environ
    return json.dumps(found)


def put_back() -> int:
    """Restore every time-out that was raised, unless the program has changed it meanwhile."""
    api, kept = _kept()
    if kept is None:
        return 0
    request_disconnect, changes = kept
    for backend, before, ours in reversed(changes):  # the last one counts, if there are two
        if backend.options._timeout == ours:  # noqa: SLF001
            backend._set_default_timeout(before)  # noqa: SLF001
    api.request_disconnect = request_disconnect
    return len(changes)


# torch is never imported, and everything private in it is guarded and read back. What was changed
# is kept in the rank itself, on what pydevd calls when its debugger leaves, however it leaves: no
# longer time-out stays behind.
def extend(c10d: Any, wanted: timedelta) -> tuple[list[float], str]:
    """Raise time-outs; return what they were in seconds, and why one was not raised."""
    changes: list[Change] = []
    problem = ""
    for backend in _backends(c10d):
        before = backend.options._timeout  # noqa: SLF001
        if before >= wanted:
            continue
        backend._set_default_timeout(wanted)  # noqa: SLF001
        if backend.options._timeout == wanted:  # noqa: SLF001
            changes.append((backend, before, wanted))
        else:
            problem = "torch did not accept the longer timeout"
    if changes:
        _keep(changes)
    return [before.total_seconds() for _, before, _ in changes], problem


def _backends(c10d: Any) -> Iterable[Any]:
    found = {}
    for group in list(c10d._world.pg_map):  # noqa: SLF001
        for device in group._device_types:  # noqa: SLF001
            backend = group._get_backend(device)  # noqa: SLF001
            if hasattr(backend, "_set_default_timeout") and hasattr(backend, "options"):
                found[id(backend)] = backend
    return found.values()


def _kept() -> tuple[Any, Any]:
    """pydevd's API, and what is kept there: its own function, and the changes; or None."""
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    return api, getattr(api.request_disconnect, "clocks", None)


def _keep(changes: list[Change]) -> None:
    api, kept = _kept()
    if kept is not None:
        kept[1].extend(changes)
        return
    request_disconnect = api.request_disconnect

    def put_back_and_disconnect(self: Any, *rest: Any, **named: Any) -> Any:
        with suppress(Exception):
            put_back()
        return request_disconnect(self, *rest, **named)

    put_back_and_disconnect.clocks = request_disconnect, changes  # type: ignore[attr-defined]
    api.request_disconnect = put_back_and_disconnect


def collectives() -> list[Any]:
    """Return [name, time-out, age] of collectives under way, in seconds; null for unknown."""
    inner = sys.modules.get(INNER_C10D)
    dumps: list[Any] = [getattr(inner, name) for name in DUMPS if hasattr(inner, name)]
    if not dumps:
        return _collective_on_the_stack()
    now, found = time.time_ns(), {}
    for dump in dumps:
        for entry in json.loads(dump(True, True)).get("entries") or []:
            if not entry.get("retired") and entry.get("state") != "completed":
                created = entry["time_created_ns"]
                name = entry["profiling_name"].partition(":")[2] or entry["profiling_name"]
                found[created, name] = [name, entry["timeout_ms"] / 1e3, (now - created) / 1e9]
    return [found[key] for key in sorted(found)][:MAX_COLLECTIVES]


def _collective_on_the_stack() -> list[Any]:
    """An older torch keeps no record: the function of torch that the main thread is in."""
    enabled = gc.isenabled()
    gc.disable()  # see `_no_collection` in tracing.py
    try:
        innermost = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
        frames = [frame for frame, _ in walk_stack(innermost)] if innermost is not None else []
    finally:
        if enabled:
            gc.enable()
    names = [each.f_code.co_name for each in frames if each.f_globals.get("__name__") == C10D]
    return [[name, None, None] for name in names[-1:]]
