"""Pods that are network namespaces of this machine, and what their cluster says of them.

Each has a loopback of its own, so that all of them can have a rank on port 5678, and an address
on a bridge, where they find each other. Only root may make them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.hosts.private_network import (
    connect_in,
    inside,
    ip,
    kill_all_in,
    logged,
    plug_in,
    private_network,
)
from tests.support.kube_server.custom_resources import CustomResources
from tests.support.processes.waiting import until

Json = dict[str, Any]
NAMESPACE: Final = "training"
ADDRESS: Final = "10.78.0.1"  # of the cluster itself, on the bridge
_LIMIT: Final = 30.0  # s; not a wait
_CREATED: Final = "2026-01-01T00:00:00Z"
Changed = Callable[[str, "Pod"], None]


@dataclass(eq=False)
class Pod:
    """One pod, and the process that runs in it."""

    name: str
    address: str
    network: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    env: Mapping[str, str]
    changed: Changed
    namespace: str = NAMESPACE
    uid: int = 0
    phase: str = "Pending"
    restarts: int = 0
    state: Json = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last_state: Json = field(default_factory=dict)
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    log: Path = Path(os.devnull)
    exec_allowed: bool = True
    reads_processes: bool = True
    """Whether who executes something in it may read the memory of what runs there."""
    controlled: bool = False
    """Whether an operator made it, and makes another where it fails."""
    unscheduled: str = ""
    """Why no node takes it."""

    async def start(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        """Run its container, or one more program in it."""
        environ = {**os.environ, **self.env, **(env or {})}
        process = await logged(
            self.log, *self.command(*words), cwd=cwd, env=environ, start_new_session=True
        )
        self.processes.append(process)
        self.runs()

    def runs(self) -> None:
        """It is running, says the cluster."""
        self.phase, self.state = "Running", {"running": {"startedAt": _CREATED}}
        self.changed("MODIFIED", self)

    async def ended(self, *, within: float) -> int:
        """Wait for all that runs in it; the cluster sees its end. The highest exit code."""
        code = max([await asyncio.wait_for(one.wait(), within) for one in self.processes])
        self.phase = "Failed" if code else "Succeeded"
        self.state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        self.changed("MODIFIED", self)
        return code

    async def restarts_now(self, reason: str = "CrashLoopBackOff") -> None:
        """Its container is killed, and waits to be started again."""
        await self.kill()
        self.restarts += 1
        self.last_state = {"terminated": {"exitCode": 137, "reason": "Error"}}
        self.state = {"waiting": {"reason": reason}}
        self.changed("MODIFIED", self)

    async def fails(self, code: int = 1, reason: str = "Error") -> None:
        """It ends, and whoever made it may make another."""
        await self.kill()
        self.phase, self.state = "Failed", {"terminated": {"exitCode": code, "reason": reason}}
        self.changed("MODIFIED", self)

    async def kill(self) -> None:
        """End everything that runs in it."""
        await until(lambda: not kill_all_in(self.network), within=_LIMIT, what="an empty pod")
        for process in self.processes:
            await process.wait()
        self.processes.clear()

    def runs_something(self) -> bool:
        """Whether its container has not ended; one that a test never started has not."""
        return not self.processes or any(each.returncode is None for each in self.processes)

    def pids(self) -> list[int]:
        """Everything that runs in it."""
        return [*map(int, ip("netns", "pids", self.network).split())]

    @property
    def output(self) -> str:
        """What it has printed."""
        return self.log.read_text("utf-8") if self.log.exists() else ""

    def command(self, *words: str) -> list[str]:
        """What runs these words in it."""
        return [*inside(self.network), *words]

    def exec_command(self, *words: str) -> list[str]:
        """What runs these words in it for somebody who executes them from outside."""
        lacks = [] if self.reads_processes else ["setpriv", "--bounding-set=-sys_ptrace"]
        return self.command(*lacks, *words)

    async def connect(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port on its own loopback, as its node does for a forward."""
        sock = await asyncio.to_thread(connect_in, self.network, "127.0.0.1", port)
        return await asyncio.open_connection(sock=sock)

    def json(self) -> Json:
        """The pod as the API shows it; a job makes another where one of its pods fails."""
        job = self.labels.get("job-name")
        owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": job or "", "uid": job or "",
                   "controller": True}]  # fmt: skip
        env = [{"name": name, "value": value} for name, value in self.env.items()]
        container = {"name": "main", "image": "python", "env": env}
        status = {"name": "main", "ready": self.phase == "Running", "restartCount": self.restarts,
                  "image": "python", "imageID": "", "state": self.state,
                  "lastState": self.last_state}  # fmt: skip
        conditions: list[Json] = [{"type": "Ready", "status": str(self.phase == "Running")}]
        if self.unscheduled:
            conditions.append({"type": "PodScheduled", "status": "False",
                               "reason": "Unschedulable", "message": self.unscheduled})  # fmt: skip
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "uid": f"{self.name}-{self.uid}",
                "labels": dict(self.labels),
                "annotations": dict(self.annotations),
                "creationTimestamp": _CREATED,
                "ownerReferences": owners if job or self.controlled else [],
            },
            "spec": {"nodeName": "node1", "restartPolicy": "OnFailure", "containers": [container]},
            "status": {
                "phase": self.phase,
                "podIP": self.address,
                "conditions": conditions,
                "containerStatuses": [] if self.unscheduled else [status],
            },
        }


class Cluster:
    """The pods that there are, all in one namespace, and every change of them."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.namespace = namespace
        self.pods: dict[str, Pod] = {}
        self.jobs: dict[str, Json] = {}
        self.custom = CustomResources(namespace)
        self.changes: list[Json] = []  # all there were; how many is a list's version
        self._changed = asyncio.Event()  # of the next one
        self._folder = folder
        self._made = 0

    def add(
        self,
        name: str,
        *,
        labels: Mapping[str, str],
        env: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        controlled: bool = False,
    ) -> Pod:
        """Create a pod, which is Pending until something is started in it."""
        self._made += 1
        network, address = f"pod-{os.getpid()}-{self._made}", f"10.78.0.{1 + self._made}"
        pod = Pod(name, address, network, labels, annotations or {}, env or {}, self._tell)
        pod.namespace, pod.controlled = self.namespace, controlled
        pod.uid, pod.log = self._made, self._folder / f"{name}.log"
        self.pods[name] = pod
        plug_in(network, f"pod{self._made}", "eth0", f"{address}/24")
        ip("link", "set", f"pod{self._made}", "master", "pods", "up")
        self._tell("ADDED", pod)
        return pod

    async def delete(self, name: str) -> None:
        """Delete a pod with all that runs in it."""
        pod = self.pods.pop(name)
        await pod.kill()
        ip("netns", "del", pod.network)
        self._tell("DELETED", pod)

    def job(self, name: str, **conditions: str) -> None:
        """A job, and which of its conditions are true, each for a reason."""
        true = [{"type": kind, "status": "True", "reason": why} for kind, why in conditions.items()]
        self.jobs[name] = {
            "kind": "Job",
            "apiVersion": "batch/v1",
            "metadata": {"name": name, "namespace": self.namespace, "uid": name},
            "status": {"conditions": true} if true else {},
        }

    def _tell(self, what: str, pod: Pod) -> None:
        if what == "MODIFIED" and self.pods.get(pod.name) is not pod:
            return
        self.changes.append({"type": what, "object": pod.json()})
        self._changed.set()
        self._changed = asyncio.Event()

    async def changes_from(self, version: int) -> AsyncIterator[Json]:
        """Every change after this version, for ever."""
        while True:
            for change in self.changes[version:]:
                version += 1
                yield change
            if version == len(self.changes):
                await self._changed.wait()

    def close(self) -> None:
        """Remove every pod, and what runs there."""
        for pod in self.pods.values():
            kill_all_in(pod.network)
            ip("netns", "del", pod.network)


@contextmanager
def cluster(folder: Path, namespace: str = NAMESPACE) -> Iterator[Cluster]:
    """A cluster without pods; the whole test moves to a network of its own."""
    with private_network():
        ip("link", "add", "pods", "type", "bridge")
        ip("addr", "add", f"{ADDRESS}/24", "dev", "pods")
        ip("link", "set", "pods", "up")
        made = Cluster(folder, namespace)
        try:
            yield made
        finally:
            made.close()
