"""A cluster for the tests, and a user whose kubectl leads to it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from dap_mux.system.procfs import command_line
from tests.launchers import tour
from tests.launchers.tools import command
from tests.real.driving import COUNTING
from tests.support.hosts.private_network import possible
from tests.support.kube_server import Cluster, KubeServer, Pod, cluster, kube_server
from tests.support.processes.commands import LIMIT, User

ROOT: Final = Path(__file__).resolve().parents[2]
JOB: Final = "train"
OLDEST: Final = (1, 31)
NEEDS_PODS: Final = pytest.mark.skipif(
    not possible(), reason="only root may make pods with own networks"
)
IN_PODS: Final = [pytest.mark.timeout(240), NEEDS_PODS]
PYTHON: Final = {"PYTHONPATH": str(ROOT)}


@dataclass
class Scene:
    """A cluster, and a user whose kubectl leads to it."""

    user: User
    cluster: Cluster
    server: KubeServer

    def pod(self, number: int, incarnation: str = "a") -> Pod:
        """Create the pod of one rank, which has its number from its job; it is Pending."""
        return self.cluster.add(
            f"{JOB}-{number}-{incarnation}",
            labels={"job-name": JOB},
            annotations={"batch.kubernetes.io/job-completion-index": str(number)},
            env={
                "RANK": str(number),
                "WORLD_SIZE": str(tour.RANKS),
                "MASTER_ADDR": "10.78.0.2",  # the first pod
                "MASTER_PORT": "29500",
            },
        )

    async def run(self, pod: Pod, program: str, *arguments: str, port: int = 5678) -> None:
        """Start a rank in it that waits for a debugger on the pod's own loopback."""
        agent = [sys.executable, "-m", "dap_mux.rank", "--port", str(port)]
        await pod.start(*agent, program, *arguments, cwd=self.user.folder, env=PYTHON)

    async def loops(self, count: int) -> tuple[list[Pod], Path]:
        """Start ranks that count until a file is there."""
        done = self.user.folder / "done"
        pods = [self.pod(number) for number in range(count)]
        for pod in pods:
            await self.run(pod, COUNTING, str(done))
        return pods, done

    def forward_of(self, pod: Pod) -> int:
        """The pid of the child that forwards a pod's ports; 0 for none."""
        wanted = {"port-forward", f"pod/{pod.name}"}
        found = (pid for pid in self.user.processes() if wanted <= {*(command_line(pid) or ())})
        return next(found, 0)


def adapters_of(pod: Pod) -> list[int]:
    """The pids of debugpy's adapters in it."""
    commands = {pid: " ".join(command_line(pid) or ()) for pid in pod.pids()}
    return [pid for pid, command in commands.items() if "--server-access-token" in command]


def listening_in(pod: Pod) -> set[int]:
    """The ports that are listened on in its network, while any of its processes runs."""
    with suppress(OSError):
        table = Path(f"/proc/{pod.pids()[0]}/net/tcp").read_text("ascii").splitlines()[1:]
        rows = [row.split() for row in table]
        return {int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A"}
    return set()


@asynccontextmanager
async def kubernetes(user: User, tmp_path: Path) -> AsyncIterator[Scene]:
    """Serve a cluster; the whole test moves to a network of its own."""
    kubectl = Path(_kubectl())
    logs = tmp_path / "logs"
    logs.mkdir()
    with cluster(logs) as made:
        async with kube_server(made, tmp_path / "kubeconfig") as server:
            user.environ["KUBECONFIG"] = str(server.kubeconfig)
            user.environ["PATH"] = f"{kubectl.parent}:{os.environ['PATH']}"
            yield Scene(user, made, server)


@pytest.fixture
async def scene(user: User, tmp_path: Path) -> AsyncIterator[Scene]:
    async with kubernetes(user, tmp_path) as made:
        yield made


@asynccontextmanager
async def shell(scene: Scene, script: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A shell of the user's, and what runs in it, until the block is left."""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        script,
        env=scene.user.environ,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


def _kubectl() -> str:
    """The path of a kubectl that speaks WebSocket, as the tests' API server does."""
    path = command("kubectl")
    words = [path, "version", "--client", "-o", "json"]
    said = subprocess.run(words, capture_output=True, check=True, timeout=LIMIT).stdout
    version = json.loads(said)["clientVersion"]["gitVersion"]
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        pytest.skip(f"{path} is {version}, and the tests' API server needs 1.31 or later")
    return path
