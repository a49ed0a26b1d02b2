"""The code that a session runs in the processes of a Dask cluster; `dask_cluster` sends it.

All of it is shipped by value, so it imports nothing else of dap-mux than `arming`, which is shipped
as well. Functions that take `dask_scheduler` run on the scheduler's event loop, and those that take
`dask_worker` on a worker's: none may block there.
"""

from __future__ import annotations

import asyncio
import builtins
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin
from distributed.worker import Worker

from dap_mux.rank.frameworks.arming import arm, disarm

POLL_INTERVAL_S = 0.05
WORKER, SCHEDULER = "dask_worker", "dask_scheduler"
"""Names that console commands can use in each process, as functions given to `Client.run` can."""
LAUNCHED = "DAP_MUX_RANK_PID"  # as in `dap_mux.rank.environ`
TTL = "worker-ttl"
"""The scheduler's periodic check that drops workers it has not heard of for that long."""


class RankPlugin(WorkerPlugin):  # type: ignore[misc]
    """Makes each worker's process a rank before its first task, and ends that when removed."""

    def __init__(self, name: str, bundle: bytes, wait_s: float) -> None:
        self.name = name
        self._bundle = bundle
        self._wait_s = wait_s

    async def setup(self, worker: Any) -> None:
        """Listen, and let the debugger attach before the worker gets tasks."""
        vars(builtins)[WORKER] = worker
        earlier = visits()
        report = {**listening(self._bundle), "threads": task_threads(worker)}
        # A worker that is starting answers no requests before its plugins are set up.
        message = {**report, "address": worker.address}
        await worker.scheduler.log_event(topic=self.name, msg=message)
        if not report["problem"]:
            with heartbeats(worker):
                await debugged(self._wait_s, earlier)

    def teardown(self, worker: Any) -> None:
        """Close the port, unless another worker of this process is still debugged."""
        vars(builtins).pop(WORKER, None)
        others = Worker._instances - {worker}  # noqa: SLF001  (those of this process)
        if not any(self.name in other.plugins for other in others):
            _disarm()


class FarewellPlugin(SchedulerPlugin):  # type: ignore[misc]
    """Takes everything of ours out of the cluster once the session's client has gone."""

    def __init__(self, name: str, client: str) -> None:
        self.name = name
        self._client = client

    def remove_client(self, scheduler: Any, client: str) -> None:
        """A client has left, or its connection is lost."""
        if client == self._client:
            scheduler.loop.add_callback(leave, self.name, scheduler)


def listening(bundle: bytes) -> dict[str, Any]:
    """Let a debugger attach to this process; where, and why not (`problem`)."""
    here = {"pid": os.getpid(), "machine": machine(), "problem": ""}
    try:
        return {**here, **arm(bundle)}
    except RuntimeError as error:
        return {**here, "port": 0, "problem": str(error)}


def task_threads(worker: Any) -> list[str]:
    """Return how the names of the threads begin in which the worker's executors run tasks."""
    found = [
        getattr(executor, "_thread_name_prefix", "")
        for name, executor in worker.executors.items()
        if name != "offload"
    ]
    return [prefix for prefix in found if prefix]


def machine() -> str:
    """Return what is the same in all processes that share a loopback interface and pids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {_namespace('net')} {_namespace('pid')}"
    except OSError:
        return socket.gethostname()


@contextmanager
def heartbeats(worker: Any) -> Iterator[None]:
    """Let a worker that is not registered yet tell the scheduler that it lives."""
    heartbeat = worker.periodic_callbacks["heartbeat"]
    if heartbeat.is_running():
        yield
        return
    heartbeat.start()
    try:
        yield
    finally:
        heartbeat.stop()  # the worker starts it once it is registered


def _namespace(kind: str) -> str:
    return str(Path(f"/proc/self/ns/{kind}").readlink())


def visits() -> int:
    """Return how many debuggers have attached to this process and configured it so far."""
    waiting = sys.modules.get("dap_mux.rank.debugger_wait")
    return waiting.visits() if waiting is not None else 0


async def debugged(within_s: float, earlier: int) -> None:
    """Wait until a debugger is attached and configured, at most so many seconds.

    Or has been since those `earlier` ones: a session that nobody uses any more attaches for
    milliseconds, to let the worker run on.
    """
    import debugpy  # noqa: PLC0415, T100

    until = time.monotonic() + within_s
    while not debugpy.is_client_connected() and visits() <= earlier:
        if time.monotonic() >= until:
            return
        await asyncio.sleep(POLL_INTERVAL_S)


def enter(name: str, client: str, bundle: bytes, dask_scheduler: Any = None) -> dict[str, Any]:
    """Let a debugger attach to the scheduler until this client leaves."""
    vars(builtins)[SCHEDULER] = dask_scheduler
    dask_scheduler.add_plugin(FarewellPlugin(name, client), name=name)
    return listening(bundle)


def keep_silent_workers(stopped: bool, dask_scheduler: Any = None) -> None:
    """Keep workers that send no heartbeat while the debugger holds ranks stopped.

    Afterwards all count as just heard of, so that the first check leaves them their time.
    """
    check = dask_scheduler.periodic_callbacks.get(TTL)
    if check is None:
        return
    if stopped:
        check.stop()
    elif not check.is_running():
        for worker in dask_scheduler.workers.values():
            worker.last_seen = time.time()
        check.start()


async def leave(name: str, dask_scheduler: Any = None) -> bool:
    """Take everything of ours out of the cluster."""
    keep_silent_workers(stopped=False, dask_scheduler=dask_scheduler)
    if name in dask_scheduler.plugins:
        dask_scheduler.remove_plugin(name)
    if name in dask_scheduler.worker_plugins:
        await dask_scheduler.unregister_worker_plugin(None, name=name)
    vars(builtins).pop(SCHEDULER, None)
    _disarm()
    return True


def _disarm() -> None:
    """Close the port, unless a launcher of ours has made this process a rank."""
    if os.environ.get(LAUNCHED) != str(os.getpid()):
        disarm()
