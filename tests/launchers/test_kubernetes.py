"""Kubernetes: tunnels that break and pods that start again, with the real kubectl.

The API server is ours (tests/support/kube_server); pods are networks of this machine.
"""

from __future__ import annotations

import signal
from pathlib import Path

from dap_mux.client import DapClient
from tests.launchers import tour
from tests.launchers.kube_scene import IN_PODS, JOB, Scene
from tests.real.driving import COUNT, COUNTING, joined
from tests.support.kube_server import Pod
from tests.support.processes.commands import LIMIT, bodies, listed, quiet
from tests.support.processes.waiting import until

pytestmark = IN_PODS


def returns(client: DapClient, row: int) -> int:
    """How often a rank's row has appeared."""
    found = bodies(client, "thread")
    return sum(each["threadId"] == row and each["reason"] == "started" for each in found)


async def test_tunnels_break_and_pods_start_again(scene: Scene) -> None:
    """Ten times while ranks run and once while stopped: the session stays whole."""
    pods, done = await scene.loops(4)
    flag = scene.user.folder / "flag"
    without = tour.without_clocks(scene.user)
    attach = await scene.user.start("attach", f"k8s:job/{JOB}", env=without)
    condition = f"__import__('os').path.exists({str(flag)!r})"
    here = {COUNTING: [{"line": COUNT, "condition": condition}]}
    client = await joined(attach, here)
    entries = await listed(client, "state", *["running"] * 4)
    rows = [entry["threadId"] for entry in entries]

    for time in range(10):
        await quiet(client, here)
        await break_forward(scene, client, pods[time % 4], rows[time % 4], dropped=time % 2 == 1)
    await attach.says("the tunnel to pod train-0-a is down (kubectl was terminated by SIGKILL)")
    await attach.says("the tunnel to pod train-0-a is open again")
    again = await listed(client, "state", *["running"] * 4)
    assert [entry["endpoint"] for entry in again] == [entry["endpoint"] for entry in entries]

    flag.touch()
    await listed(client, "line", *[COUNT] * 4)
    await quiet(client, here)
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
    attach.process.kill()
    await scene.user.nothing_is_left(within=LIMIT)


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
    crash = "exit code 137 (Error)"
    why = f"pod {pods[1].name} does not run now: CrashLoopBackOff, after {crash}"
    here = "breakpoint"
    await listed(client, "reason", here, why, here, here)
    told = [body["output"] for body in bodies(client, "output") if crash in body["output"]]
    assert len(told) == 1, told
    assert f"see `kubectl logs --previous {pods[1].name}`" in told[0]
    await scene.run(pods[1], COUNTING, str(done))
    await listed(client, "line", *[COUNT] * 4)
    await scene.cluster.delete(pods[3].name)
    why = f"pod {pods[3].name} was deleted; perhaps another will replace it"
    await listed(client, "reason", here, here, here, why)
    pods[3] = scene.pod(3, "b")
    await scene.run(pods[3], COUNTING, str(done))
