"""The driver of a Dask job, which is the rank `client:0`: it waits for its cluster to be debugged.

The driver becomes a rank before it starts a cluster, or is a client of one. Each cluster that it
meets is named in the rendezvous folder, and the session joins it; only then does the driver go on,
so no task runs before its worker is a rank. A cluster in the driver's own process has no address
for others, and needs none: its tasks run in this rank.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dap_mux.rank.pickled_code import keep_file_names
from dap_mux.rank.ready import RENDEZVOUS, write_ready_file
from dap_mux.rank.starter import starter_is_gone

POLL_INTERVAL_S = 0.05
JOIN_TIMEOUT_S = 120.0  # of a session on a busy machine, which has to reach every worker
OWN_PROCESS = "inproc://"
DRIVER_THREADS = ["MainThread", "*Dask-*-Threads*"]
"""The threads that run the user's code: tasks run in the driver where workers do."""
_joined: set[str] = set()


def watch_cluster(module: Any, tell: Callable[[str, int, int], object]) -> None:
    """Have a process that starts a cluster (`LocalCluster` and its like) become a rank."""
    _tell_before(module.Cluster, tell)


def watch_client(module: Any, tell: Callable[[str, int, int], object]) -> None:
    """Have a client of a cluster become a rank, and wait for the session to join that cluster."""
    _tell_before(module.Client, tell)
    connect = module.Client._start  # noqa: SLF001

    @functools.wraps(connect)
    async def start(self: Any, *arguments: Any, **options: Any) -> Any:
        result = await connect(self, *arguments, **options)
        address = getattr(self.scheduler, "address", None)
        if address and not address.startswith(OWN_PROCESS) and address not in _joined:
            _joined.add(address)
            await _let_session_join(address)
        return result

    module.Client._start = start  # noqa: SLF001


def _tell_before(kind: Any, tell: Callable[[str, int, int], object]) -> None:
    initialize = kind.__init__

    @functools.wraps(initialize)
    def wrapped(self: Any, *arguments: Any, **options: Any) -> None:
        keep_file_names()
        tell("dask", 0, 1)
        initialize(self, *arguments, **options)

    kind.__init__ = wrapped


async def _let_session_join(address: str) -> None:
    """Name the cluster, and wait until the session has joined it, has failed to, or has gone."""
    cluster = Path(os.environ[RENDEZVOUS]) / f"{os.getpid()}-{len(_joined)}.cluster"
    _name_cluster(cluster, address)
    until = time.monotonic() + JOIN_TIMEOUT_S
    while _awaits_session(cluster) and time.monotonic() < until:  # noqa: ASYNC110  (another process is waited for)
        await asyncio.sleep(POLL_INTERVAL_S)


def _name_cluster(cluster: Path, address: str) -> None:
    if cluster.parent.is_dir():  # it is not on another host
        record = {"endpoint": f"dask:{address}", "python": sys.executable, "pid": os.getpid()}
        write_ready_file(cluster, record)


def _awaits_session(cluster: Path) -> bool:
    """Whether the session is there, and has not said yet that the driver may go on."""
    here = cluster.parent.is_dir() and not starter_is_gone(os.environ)
    return here and not cluster.with_suffix(".joined").exists()
