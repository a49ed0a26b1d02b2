"""Kubernetes: four pods with a rank each, through the real kubectl and its forwards.

The API server is ours (tests/support/kube_server); pods are networks of this machine.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from tests.engines import tour
from tests.engines.tools import command
from tests.real.driving import line_of, script
from tests.support.commands import LIMIT, User, bodies, listed, user
from tests.support.kube_server import Cluster, KubeServer, Pod, cluster, kube_server
from tests.support.private_network import possible
from tests.support.waiting import until

__all__ = ["user"]

ROOT: Final = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not possible(), reason="only root may make pods with own networks"),
]
JOB: Final = "train"
LOOP: Final = script("until_told")
COUNT: Final = line_of(LOOP, "count")
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

    async def run(self, pod: Pod, program: str, *arguments: str) -> None:
        """Start a rank in it that waits for a debugger on the pod's own loopback."""
        agent = [sys.executable, "-m", "dap_mux.rank", "--port", "5678"]
        await pod.start(*agent, program, *arguments, cwd=self.user.folder, env=PYTHON)

    async def loops(self, count: int) -> tuple[list[Pod], Path]:
        """Start ranks that count until a file is there."""
        done = self.user.folder / "done"
        pods = [self.pod(number) for number in range(count)]
        for pod in pods:
            await self.run(pod, LOOP, str(done))
        return pods, done

    def forward_of(self, pod: Pod) -> int:
        """The pid of the child that forwards a pod's ports; 0 for none."""
        for pid in self.user.processes():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"port-forward" in words and f"pod/{pod.name}".encode() in words:
                return pid
        return 0


@pytest.fixture
async def scene(user: User, tmp_path: Path) -> AsyncIterator[Scene]:
    kubectl = Path(command("kubectl"))
    logs = tmp_path / "logs"
    logs.mkdir()
    with cluster(logs) as made:
        async with kube_server(made, tmp_path / "kubeconfig") as server:
            user.environ["KUBECONFIG"] = str(server.kubeconfig)
            user.environ["PATH"] = f"{kubectl.parent}:{os.environ['PATH']}"
            yield Scene(user, made, server)


async def test_four_pods_of_a_job(scene: Scene) -> None:
    """The pods come while it waits for them, are debugged, and the job's result is right."""
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    await attach.says("no ranks yet; dap-mux waits for them")
    pods = [scene.pod(number) for number in range(tour.RANKS)]
    client = await attach.client()
    for pod in pods:
        await scene.run(pod, str(tour.PROGRAM), *tour.OPTIONS)
    await tour.attach(client, str(tour.PROGRAM))
    await tour.two_held(client)
    entries = (await client.request("list", timeout=LIMIT))["ranks"]
    assert [entry["host"] for entry in entries] == [pod.name for pod in pods]
    await tour.ask_and_step(client)
    await tour.let_go(client)
    assert [await pod.ended(within=LIMIT) for pod in pods] == [0] * tour.RANKS
    tour.check_result("".join(pod.output for pod in pods))
    await client.close()
    assert (await attach.ends()).code == 0


def returns(client: DapClient, row: int) -> int:
    """How often a rank's row has appeared."""
    found = bodies(client, "thread")
    return sum(each["threadId"] == row and each["reason"] == "started" for each in found)


async def test_tunnels_break_and_pods_start_again(scene: Scene) -> None:
    """Ten times while ranks run and once while stopped: the session stays whole."""
    pods, done = await scene.loops(4)
    flag = scene.user.folder / "flag"
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    client = await attach.client()
    condition = f"__import__('os').path.exists({str(flag)!r})"
    breakpoints = {LOOP: [{"line": COUNT, "condition": condition}]}
    await client.handshake({"justMyCode": True}, breakpoints=breakpoints, timeout=LIMIT)
    entries = await listed(client, "state", *["running"] * 4)
    rows = [entry["threadId"] for entry in entries]

    for time in range(10):
        await break_forward(scene, client, pods[time % 4], rows[time % 4], dropped=time % 2 == 1)
    assert "the tunnel to pod train-0-a is down (kubectl was ended by SIGKILL)" in attach.err
    assert "the tunnel to pod train-0-a is open again" in attach.err
    again = await listed(client, "state", *["running"] * 4)
    assert [entry["endpoint"] for entry in again] == [entry["endpoint"] for entry in entries]

    flag.touch()
    await listed(client, "line", *[COUNT] * 4)
    await break_forward(scene, client, pods[2], rows[2])
    await listed(client, "line", *[COUNT] * 4)
    await restart_and_move(scene, client, pods, done)
    moved = await listed(client, "line", *[COUNT] * 4)
    assert [entry["host"] for entry in moved] == [pod.name for pod in pods]
    assert [entry["threadId"] for entry in moved] == rows
    assert len(bodies(client, "initialized")) == 1

    done.touch()
    await tour.let_go(client)
    assert [await pod.ended(within=LIMIT) for pod in pods] == [0] * 4
    assert "counted" in pods[3].output


async def break_forward(
    scene: Scene, client: DapClient, pod: Pod, row: int, *, dropped: bool = False
) -> None:
    """Kill the forward to a pod, or have the cluster drop it; wait until its rank is back."""
    before, forward = returns(client, row), scene.forward_of(pod)
    if dropped:
        await scene.server.drop_forwards(pod.name)
    else:
        scene.user.signal(forward, signal.SIGKILL)
    await until(lambda: returns(client, row) > before, within=LIMIT, what=f"{pod.name} is back")
    assert scene.forward_of(pod) not in (0, forward)


async def restart_and_move(scene: Scene, client: DapClient, pods: list[Pod], done: Path) -> None:
    """One pod's container starts again; another pod is deleted, and made anew elsewhere."""
    await pods[1].restarts_now()
    why = f"pod {pods[1].name} does not run now: CrashLoopBackOff"
    here = "breakpoint"
    await listed(client, "reason", here, why, here, here)
    await scene.run(pods[1], LOOP, str(done))
    await listed(client, "line", *[COUNT] * 4)
    await scene.cluster.delete(pods[3].name)
    await listed(client, "state", "stopped", "stopped", "stopped", "exited")
    pods[3] = scene.pod(3, "b")
    await scene.run(pods[3], LOOP, str(done))
