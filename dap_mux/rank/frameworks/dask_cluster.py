"""The ranks of a Dask cluster: its workers, and its scheduler, as a client of it reports them.

A worker plugin, registered from outside, makes each worker a rank, present or future. It is removed
at the end, also where this process is killed: a plugin of the scheduler sees its client go.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle
from distributed import Client, Scheduler

from dap_mux.rank.frameworks import arming, dask_remote, lines
from dap_mux.rank.frameworks.dask_ranks import DaskRanks, Report
from dap_mux.rank.frameworks.dask_remote import (
    RankPlugin,
    enter,
    keep_silent_workers,
    leave,
    machine,
)
from dap_mux.rank.frameworks.lines import fail, read_session

CONNECT_TIMEOUT_S = 20.0
POLL_INTERVAL_S = 0.25
ATTACH_TIMEOUT_S = 10.0  # that a new worker waits for the session before its first task
JOIN_TIMEOUT_S = 60.0  # the same, of a job that the session has started
# Older releases list five workers unless asked for all.
_ALL_WORKERS = (
    {"n_workers": -1} if "n_workers" in inspect.signature(Scheduler.identity).parameters else {}
)


def main(options: dict[str, Any]) -> None:
    """Report the ranks of a cluster until the session leaves, or the cluster ends.

    `options`: `endpoint` (an address, or @ and a scheduler file), `debugpy` (for workers without);
    of a launched job the pid of its `driver`, and the file that lets it go on (`joined`).
    """
    for module in (arming, dask_remote):
        cloudpickle.register_pickle_by_value(module)
    asyncio.run(_serve(options))


async def _serve(options: dict[str, Any]) -> None:
    try:
        client = await Client(
            **_where(str(options["endpoint"])),
            asynchronous=True,
            set_as_default=False,
            timeout=CONNECT_TIMEOUT_S,
            name="dap-mux",
        )
    except (OSError, ValueError) as error:
        fail(
            f"no Dask scheduler at {options['endpoint']}: {error}",
            "give the address that `dask scheduler` prints, or @ and its --scheduler-file",
        )
    async with client:
        await Cluster(client, options).serve()


def _where(endpoint: str) -> dict[str, str]:
    """The arguments of `Client` for this endpoint."""
    if not endpoint.startswith("@"):
        return {"address": endpoint}
    path = Path(endpoint[1:])
    try:
        if path.exists() and not path.is_file():  # a FIFO would keep us waiting
            raise OSError("it is not a regular file")
        return {"address": str(json.loads(path.read_text("utf-8"))["address"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(
            f"{endpoint[1:]} is not a scheduler file: {error}",
            "`dask scheduler --scheduler-file PATH` writes one",
        )


class Cluster:
    """A Dask cluster with our plugin in it."""

    def __init__(self, client: Client, options: dict[str, Any]) -> None:
        self._client = client
        self._bundle = arming.rank_bundle(str(options.get("debugpy", "")))
        self._joined = options.get("joined")
        self._name = f"dap-mux-{uuid.uuid4().hex[:8]}"
        self._ranks = DaskRanks(machine(), options.get("driver"))
        self._reports: dict[str, Report] = {}
        self._read = 0  # reports so far
        self._scheduler: list[dict[str, Any]] = []
        self._reported: list[dict[str, Any]] | None = None
        self._told: set[str] = set()

    async def serve(self) -> None:
        """Report the ranks until the session leaves or the scheduler ends."""
        left = self._follow_session()
        try:
            await self._enter()
            while not left.is_set():
                await self._look()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(left.wait(), POLL_INTERVAL_S)
        except OSError:  # the scheduler's connection is lost
            lines.report(end=True)
        else:
            await self._leave()

    def _follow_session(self) -> asyncio.Event:
        """Follow the session's lines; the event is set when it leaves."""
        loop, left = asyncio.get_running_loop(), asyncio.Event()

        def stopped(now: bool) -> None:
            keeps = self._on_scheduler(keep_silent_workers, stopped=now)
            asyncio.run_coroutine_threadsafe(keeps, loop)

        def read() -> None:
            read_session(stopped)
            loop.call_soon_threadsafe(left.set)

        threading.Thread(target=read, daemon=True).start()
        return left

    async def _on_scheduler(self, function: Any, *arguments: Any, **options: Any) -> Any:
        """Run a function on the scheduler; None, and the reason is told, where it refuses."""
        try:
            return await self._client.run_on_scheduler(function, *arguments, **options)
        except ValueError as error:  # distributed.scheduler.pickle is false
            self._tell(f"the scheduler cannot be debugged, and may drop paused workers: {error}")
            return None

    async def _enter(self) -> None:
        self._tell(f"dashboard: {self._client.dashboard_link}")
        client = self._client.id
        report = await self._on_scheduler(enter, self._name, client, self._bundle)
        if report:
            self._scheduler = self._ranks.scheduler(self._client.scheduler.address, report)
        self._registering = asyncio.ensure_future(self._register())

    async def _register(self) -> None:
        """Make the workers ranks; the driver goes on once all are debugged."""
        wait_s = JOIN_TIMEOUT_S if self._joined else ATTACH_TIMEOUT_S
        plugin = RankPlugin(self._name, self._bundle, wait_s)
        try:
            await self._client.register_plugin(plugin, name=self._name)
        finally:
            self._let_driver_go_on()

    def _let_driver_go_on(self) -> None:
        if self._joined:
            Path(self._joined).touch()

    async def _leave(self) -> None:
        """Take everything of ours out; the scheduler does so itself where it may run `leave`."""
        if await self._on_scheduler(leave, self._name) is None:
            await self._client.unregister_worker_plugin(self._name)

    async def _look(self) -> None:
        """Report the ranks if they have changed. Raises OSError once the scheduler has gone."""
        await self._read_reports()  # first: of a worker that the scheduler knows
        identity = await self._client.scheduler.identity(**_ALL_WORKERS)
        workers: dict[str, dict[str, Any]] = identity["workers"]
        for gone in self._reports.keys() - workers.keys():
            del self._reports[gone]
        if self._reported is None and self._reports.keys() < workers.keys():
            return  # they are numbered by name once all are there
        ranks = self._ranks.workers(workers, self._reports, self._scheduler, time.monotonic())
        for text in self._ranks.notices:
            self._tell(text)
        if ranks != self._reported:
            self._reported = ranks
            lines.report(ranks=ranks)

    async def _read_reports(self) -> None:
        """Read where new workers say that they listen."""
        events = await self._client.get_events(self._name)
        for _, report in events[self._read :]:
            self._reports[report["address"]] = report
        self._read = len(events)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            lines.report(notice=text)
