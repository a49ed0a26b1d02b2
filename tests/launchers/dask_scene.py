"""A real Dask cluster of four workers, each under a Nanny, and its jobs; see examples/dask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.launchers import launching
from tests.launchers.tools import environment
from tests.support.hosts.hosts import Host
from tests.support.hosts.private_network import inside, logged
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until

PROGRAM: Final = Path(__file__).resolve().parents[2] / "examples" / "dask" / "readings.py"
WORKERS: Final = 4
line = partial(launching.line, PROGRAM)
HERE: Final = Host("", "127.0.0.1", Path(), Path())
POLL_INTERVAL_S: Final = 0.1
RESULT: Final = "mean spread of 40 days: 76.1733\n"
_STATE: Final = """\
import json, sys, time
from distributed import Client

def state(dask_scheduler):
    workers = dask_scheduler.workers.values()
    check = dask_scheduler.periodic_callbacks["worker-ttl"]
    return {
        "plugins": [name for name in dask_scheduler.plugins if "dap-mux" in name],
        "worker_plugins": [name for name in dask_scheduler.worker_plugins if "dap-mux" in name],
        "checks_silence": check.is_running(),
        "workers": sorted(str(each.name) for each in workers),
        "silent": {each.pid: time.time() - each.last_seen for each in workers},
    }

def listens(dask_worker):
    own = sys.modules.get("dap_mux.rank.api")
    return own is not None and own._started.address is not None

with Client(sys.argv[1]) as client:
    answer = client.run_on_scheduler(state)
    if sys.argv[2:] == ["workers"]:
        answer["listening"] = sum(client.run(listens).values())
print(json.dumps(answer))
"""


@dataclass
class Job:
    """A driver's process."""

    process: asyncio.subprocess.Process
    log: Path

    async def ends(self) -> tuple[int, str]:
        """Wait for its end; return its exit code, and all that it printed."""
        code = await asyncio.wait_for(self.process.wait(), 2 * LIMIT)
        return code, self.log.read_text("utf-8")


class DaskCluster:
    """A running scheduler and its workers."""

    def __init__(self, user: User, hosts: Sequence[Host] = ()) -> None:
        self.hosts = hosts or (HERE,)
        self.python = environment("dask") / "python"
        self.file = user.folder / "scheduler.json"
        self._user = user
        self._environ = {name: text for name, text in user.environ.items() if name != "PYTHONPATH"}
        self._jobs = 0

    @property
    def address(self) -> str:
        """`tcp://HOST:PORT` of its scheduler."""
        return str(json.loads(self.file.read_text("utf-8"))["address"])

    def _is_named(self) -> bool:
        """Dask writes into the file that is there already."""
        return self.file.exists() and self.file.read_text("utf-8").endswith("}")

    async def begin(self, **config: str) -> None:
        """Start it; `config` are Dask's settings, as variables. Each host has some workers."""
        file = ("--scheduler-file", str(self.file))
        first, page = self.hosts[0], ("--dashboard-address", "127.0.0.1:0")
        words = ("-m", "dask", "scheduler", "--port", "0", "--host", first.address, *page, *file)
        await self._start("scheduler", *words, on=first, **config)
        await until(self._is_named, within=LIMIT, what="a whole scheduler file")
        for host in self.hosts:
            name = ("--name", f"{host.name}-w" if host.name else "w", "--host", host.address)
            each = ("--nworkers", str(WORKERS // len(self.hosts)), "--nthreads", "1")
            those = ("-m", "dask", "worker", *each, *name, "--no-dashboard", *file)
            await self._start(f"{host.name}workers", *those, on=host, **config)

    async def runs(self, *options: str) -> Job:
        """Start the example as a job of the cluster."""
        self._jobs += 1
        words = (str(PROGRAM), "--scheduler", self.address, *options)
        return await self._start(f"job-{self._jobs}", *words)

    async def has_workers(self) -> None:
        """Wait until all workers are there."""
        while len((await self.state())["workers"]) < WORKERS:  # noqa: ASYNC110  (another process is asked)
            await asyncio.sleep(POLL_INTERVAL_S)

    async def is_patient(self) -> None:
        """Wait until the scheduler drops no silent worker."""
        while (await self.state())["checks_silence"]:  # noqa: ASYNC110  (another process is asked)
            await asyncio.sleep(POLL_INTERVAL_S)

    async def has_been_silent(self, pid: int, seconds: float) -> None:
        """Wait until a worker has sent no heartbeat for so long."""
        while (await self.state())["silent"][str(pid)] < seconds:  # noqa: ASYNC110  (another process is asked)
            await asyncio.sleep(POLL_INTERVAL_S)

    async def state(self, *what: str) -> dict[str, Any]:
        """What is of ours in the scheduler, and (with "workers") in its workers."""
        job = await self._start("state", "-c", _STATE, self.address, *what)
        code, text = await job.ends()
        assert code == 0, text
        found: dict[str, Any] = json.loads(text.splitlines()[-1])
        return found

    def log(self, name: str) -> str:
        """All that `scheduler` or `workers` have printed."""
        return (self._user.folder / f"{name}.log").read_text("utf-8")

    async def _start(self, name: str, *words: str, on: Host = HERE, **config: str) -> Job:
        there = inside(on.namespace) if on.namespace else []
        log, environ = self._user.folder / f"{name}.log", {**self._environ, **config}
        log.unlink(missing_ok=True)
        process = await logged(log, *there, self.python, *words, cwd=self._user.folder, env=environ)
        self._user.others.append(process)
        return Job(process, log)


@asynccontextmanager
async def dask_cluster(
    user: User, hosts: Sequence[Host] = (), **config: str
) -> AsyncIterator[DaskCluster]:
    """A cluster that ends with the user's other processes."""
    cluster = DaskCluster(user, hosts)
    await cluster.begin(**config)
    yield cluster
