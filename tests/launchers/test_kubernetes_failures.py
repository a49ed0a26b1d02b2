"""Kubernetes: pods that never become ranks, jobs that are over, and what ends with its pod."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from typing import Final

from tests.launchers import tour
from tests.launchers.kube_scene import IN_PODS, JOB, Scene, adapters_of
from tests.real.driving import COUNT, COUNTING, joined
from tests.support.kube_server import Pod
from tests.support.processes.commands import LIMIT, listed
from tests.support.processes.waiting import until

pytestmark = IN_PODS
HERE: Final = {COUNTING: [{"line": COUNT}]}
FAILED: Final = "has failed: exit code 3 (Error); see `kubectl "


async def test_pods_that_have_failed_are_named(scene: Scene) -> None:
    """Those from before, and those that fail while others are waited for."""
    scene.cluster.job(JOB)
    pods = [scene.pod(0), scene.pod(1)]
    await pods[0].fails(3)
    attach = await scene.user.start("attach", f"k8s:training/job/{JOB}")
    await attach.says(f"pod {pods[0].name} {FAILED}--namespace=training logs {pods[0].name}`")
    await pods[1].fails(137, "OOMKilled")
    await attach.says(f"pod {pods[1].name} has failed: exit code 137 (OOMKilled)")
    assert attach.err.count(f"pod {pods[0].name} has failed") == 1


async def test_a_job_without_retries_is_over_when_it_has_failed(scene: Scene) -> None:
    scene.cluster.job(JOB)
    pod = scene.pod(0)
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    client = await joined(attach, attach={})
    await pod.fails(3)
    await attach.says(FAILED)
    scene.cluster.job(JOB, Failed="BackoffLimitExceeded")  # a moment after its last pod
    assert (await client.wait_event("exited", timeout=LIMIT))["exitCode"] == 3
    await tour.over(client, attach)
    assert f"job {JOB} has failed: BackoffLimitExceeded" in attach.err
    again = await scene.user.does("attach", f"k8s:job/{JOB}")
    assert again.code == 3
    assert f"pod {pod.name} {FAILED}logs {pod.name}`; job {JOB} has failed: Backoff" in again.err


async def test_the_job_itself_may_not_be_asked(scene: Scene) -> None:
    """Then one that has failed may be made again, as far as anybody knows."""
    scene.server.jobs_allowed = False
    scene.cluster.job(JOB, Failed="BackoffLimitExceeded")
    await scene.pod(0).fails(3)
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    await attach.says("no ranks yet; waiting for them")
    assert FAILED in attach.err
    pod = scene.pod(0, "b")
    done = scene.user.folder / "done"
    await scene.run(pod, COUNTING, str(done))
    client = await joined(attach, HERE, attach={})
    await listed(client, "line", COUNT)
    done.touch()
    await tour.let_go(client)
    assert await pod.ended(within=LIMIT) == 0


async def test_a_pod_that_no_node_takes(scene: Scene) -> None:
    pod = scene.pod(0)
    pod.unscheduled = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    client = await joined(attach, attach={})
    await listed(client, "reason", f"pod {pod.name} is Pending: Unschedulable: {pod.unscheduled}")


async def test_a_tunnel_that_ends_with_its_pod_is_not_told(scene: Scene) -> None:
    """The pod's processes end first, then the forward, and the cluster says so last of all."""
    pods, done = await scene.loops(2)
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    client = await joined(attach, HERE, attach={})
    await listed(client, "line", COUNT, COUNT)
    done.touch()
    await tour.let_go(client)
    forwards = [scene.forward_of(pod) for pod in pods]
    for pod in pods:
        await asyncio.gather(*(process.wait() for process in pod.processes))
        await scene.server.drop_forwards(pod.name)
    for pod, forward in zip(pods, forwards, strict=True):
        ended = partial(has_no_forward, forward)
        await until(ended, within=LIMIT, what="the forward has ended")
        looked = partial(looks_into, scene, pod, looks_into(scene, pod, 0))
        await until(looked, within=LIMIT, what="it has looked into the pod")
    assert [await pod.ended(within=LIMIT) for pod in pods] == [0, 0]
    await tour.over(client, attach)
    assert "the tunnel to pod" not in attach.err, attach.err


def has_no_forward(forward: int) -> bool:
    return not Path(f"/proc/{forward}").exists()


def looks_into(scene: Scene, pod: Pod, before: int) -> int:
    """How often kubectl has been asked to look into a pod, beyond so many times."""
    return sum(each.endswith(f"/{pod.name}/exec") for each in scene.server.asked) - before


async def test_an_adapter_that_alone_has_died(scene: Scene) -> None:
    """It was there for child processes; the rank is attached again through the tunnel."""
    (pod,), done = await scene.loops(1)
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    client = await joined(attach, attach={"subProcess": True})
    await listed(client, "state", "running")
    (adapter,) = adapters_of(pod)
    os.kill(adapter, signal.SIGKILL)
    await client.wait_event("thread", lambda body: body["reason"] == "exited")
    await client.wait_event("thread", lambda body: body["reason"] == "started")
    await listed(client, "state", "running")
    done.touch()
    assert await pod.ended(within=LIMIT) == 0
