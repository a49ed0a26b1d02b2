"""Jobs of training operators by name: real ranks in pods as the operators make and label them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from tests.launchers import tour
from tests.launchers.kube_scene import IN_PODS, ROOT, Scene
from tests.launchers.launching import seen
from tests.launchers.operator_jobs import (
    MPI,
    NAME,
    PYTORCH,
    RAY,
    SET,
    Job,
    Operator,
    ray,
    replica,
    replicated,
)
from tests.real.driving import COUNT, COUNTING, joined
from tests.support.processes.commands import LIMIT, Command, listed

pytestmark = IN_PODS
Json = dict[str, Any]
PAGE: Final = ROOT / "docs" / "kubernetes.md"


@pytest.mark.parametrize("operator", [PYTORCH, MPI, SET, RAY], ids=lambda one: one.endpoint)
async def test_a_job_of_an_operator_is_one_session(scene: Scene, operator: Operator) -> None:
    """Its ranks have their groups and numbers, and one that is made again has its own."""
    job = Job(scene, operator)
    job.declare()
    await job.start()
    attach = await scene.user.start("attach", endpoint_on_the_page(operator))
    client = await joined(attach, {COUNTING: [{"line": COUNT}]}, attach={})
    entries = await listed(client, "line", *[COUNT] * tour.RANKS)
    hosts = {(each["group"], each["rank"]): each["host"] for each in entries}
    assert hosts == dict(zip(operator.rows, operator.pods, strict=True))

    name, labels = list(operator.pods.items())[-1]
    await scene.cluster.delete(name)
    del job.pods[name]
    deleted = f"pod {name} was deleted; perhaps another will replace it"
    await until_rank(client, operator.rows[-1], reason=deleted)
    again = f"{name}-again" if operator.moves else name
    await job.run(again, labels)
    await until_rank(client, operator.rows[-1], line=COUNT, host=again)

    ray_ends = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
    await tour.let_go(client)
    await job.ends(**(ray_ends if operator is RAY else {}))
    for other in operator.others:
        await scene.cluster.delete(other)
    await tour.over(client, attach)
    assert operator is not PYTORCH or f"PyTorchJob {NAME} is complete" in attach.err
    await scene.user.nothing_is_left(within=LIMIT)


def endpoint_on_the_page(operator: Operator) -> str:
    """What the page types, and its table has a row for."""
    page = PAGE.read_text("utf-8").partition("\n## Jobs of training operators\n")[2]
    section, endpoint = page.partition("\n## ")[0], f"k8s:{operator.endpoint}/{NAME}"
    assert f"| `{endpoint}` |" in section
    (typed,) = re.findall(r"^dap-mux attach (.*)$", section, re.MULTILINE)
    return str(typed) if operator is PYTORCH else endpoint


async def attached(scene: Scene, operator: Operator) -> tuple[Job, Command, DapClient]:
    """Start a job; a session with a breakpoint in its ranks is attached to it."""
    job = Job(scene, operator)
    job.declare()
    await job.start()
    attach = await scene.user.start("attach", f"k8s:{operator.endpoint}/{NAME}")
    client = await joined(attach, {COUNTING: [{"line": COUNT}]}, attach={})
    await listed(client, "line", *[COUNT] * tour.RANKS)
    return job, attach, client


async def until_rank(client: DapClient, row: tuple[str, int], **wanted: object) -> None:
    """Wait until `list` says this of the rank of this group and number; the others stay."""

    async def look() -> list[Json]:
        entries = (await client.request("list", timeout=LIMIT))["ranks"]
        assert len(entries) == tour.RANKS
        return [each for each in entries if (each["group"], each["rank"]) == row]

    def as_wanted(found: list[Json]) -> bool:
        return [{key: each[key] for key in wanted} for each in found] == [wanted]

    await seen(look, as_wanted, within=2 * LIMIT)


Change = Callable[[Scene], None]


def without_kind(scene: Scene) -> None:
    scene.cluster.custom.installed.clear()


def not_allowed(scene: Scene) -> None:
    scene.cluster.custom.allowed = False


@pytest.mark.parametrize(
    ("endpoint", "change", "complaint"),
    [
        (
            "pytorchjob/train",
            without_kind,
            (
                "the cluster has no pytorchjobs.kubeflow.org, which "
                "Kubeflow's training operator installs; is it the right cluster? `kubectl config"
            ),
        ),
        ("jobset/train", without_kind, "the cluster has no jobsets.jobset.x-k8s.io, which JobSet"),
        (
            "mpijob/trian",
            None,
            (
                "there is no 'trian' among the mpijobs of this namespace: "
                "`kubectl get mpijobs.kubeflow.org` lists them; another namespace goes before a "
                "slash: k8s:NAMESPACE/mpijob/trian"
            ),
        ),
        ("training/mpijob/trian", None, "`kubectl --namespace=training get mpijobs.kubeflow.org`"),
        ("nowhere/mpijob/train", None, "no namespace 'nowhere'"),
        (
            "rayjob/train",
            not_allowed,
            (
                "you may not read rayjobs.ray.io, which tell the pods of "
                "RayJob train: ask for the permission, or name them by their label, as in "
                "k8s:ray.io/cluster=NAME"
            ),
        ),
    ],
)
async def test_a_job_that_cannot_be_found(
    scene: Scene, endpoint: str, change: Change | None, complaint: str
) -> None:
    if change:
        change(scene)
    done = await scene.user.does("attach", f"k8s:{endpoint}")
    assert done.code == 3
    assert complaint in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("resource", "spec", "status"),
    [
        ("pytorchjobs", {}, {"conditions": 5}),
        ("pytorchjobs", {}, {"conditions": [{}]}),
        ("pytorchjobs", {"pytorchReplicaSpecs": 5}, {}),
        ("jobsets", {"replicatedJobs": [5]}, {}),
        ("jobsets", {"replicatedJobs": [{"name": "workers", "template": None}]}, {}),
        ("jobsets", 5, {}),
        ("rayjobs", {}, {"rayClusterName": "x,app=other"}),
        ("rayjobs", {}, {"rayClusterName": {"name": "\x1b[2J"}}),
    ],
)
async def test_a_job_that_makes_no_sense(
    scene: Scene, resource: str, spec: Any, status: Json
) -> None:
    """Whatever an object says: what is wrong is told in one line."""
    scene.cluster.custom.put(resource, NAME, spec, status)
    scene.cluster.add("worker", labels=replica("worker", 0, "pytorchjob")).runs()
    scene.cluster.add("set", labels=replicated("workers", 0, 0)).runs()
    done = await scene.user.does("attach", f"k8s:{resource[:-1]}/{NAME}")
    assert done.code == 2, done.err
    assert "malformed" in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err


async def test_the_labels_are_enough_where_the_job_may_not_be_read(scene: Scene) -> None:
    not_allowed(scene)
    job = Job(scene, PYTORCH)
    await job.start()
    attach = await scene.user.start("attach", f"oc:{scene.cluster.namespace}/pytorchjob/{NAME}")
    client = await joined(attach, attach={})
    entries = await listed(client, "state", *["running"] * tour.RANKS)
    assert [each["host"] for each in entries] == list(PYTORCH.pods)


async def test_a_ray_job_gets_its_cluster_later_and_another_when_it_is_tried_again(
    scene: Scene,
) -> None:
    custom = scene.cluster.custom
    custom.put("rayjobs", NAME, {}, {"jobDeploymentStatus": "Initializing"})
    attach = await scene.user.start("attach", f"k8s:rayjob/{NAME}")
    await attach.says(f"RayJob {NAME} has no Ray cluster yet (Initializing)")
    client = await joined(attach, {COUNTING: [{"line": COUNT}]}, attach={})
    custom.put("rayjobs", NAME, {}, {"jobDeploymentStatus": "WaitForDashboard"})
    await attach.says("has no Ray cluster yet (WaitForDashboard)")  # and the session goes on
    job = Job(scene, RAY)
    for cluster in (f"{NAME}-first", f"{NAME}-second"):
        for pod in [*scene.cluster.pods]:
            await scene.cluster.delete(pod)
        custom.put("rayjobs", NAME, {}, {**RAY.status, "rayClusterName": cluster})
        await job.run(f"{cluster}-head-x", ray("head", "headgroup", cluster))
        await listed(client, "host", f"{cluster}-head-x", within=2 * LIMIT)
        await listed(client, "line", COUNT, within=2 * LIMIT)


async def test_a_job_set_restarts(scene: Scene) -> None:
    """Its controller deletes all jobs, then makes all of them again."""
    job, _, client = await attached(scene, SET)
    for name in SET.pods:
        await scene.cluster.delete(name)
    gone = [f"pod {name} was deleted; perhaps another will replace it" for name in SET.pods]
    await listed(client, "reason", *gone)
    for name, labels in reversed(SET.pods.items()):
        await job.run(f"{name}-again", labels)
    entries = await listed(client, "host", *[f"{name}-again" for name in SET.pods])
    assert [(each["group"], each["rank"]) for each in entries] == SET.rows
    await listed(client, "line", *[COUNT] * tour.RANKS)


async def test_several_ranks_in_each_pod(scene: Scene) -> None:
    """The job says how many there are; the endpoint has to name their ports."""
    spec = {**PYTORCH.spec, "nprocPerNode": "2"}
    scene.cluster.custom.put("pytorchjobs", NAME, spec)
    done = scene.user.folder / "done"
    for name, labels in [*PYTORCH.pods.items()][:2]:
        pod = scene.cluster.add(name, labels=labels, controlled=True)
        for local in range(2):
            await scene.run(pod, COUNTING, str(done), port=5678 + local)
    short = await scene.user.start("attach", f"k8s:pytorchjob/{NAME}")
    await short.says("the job has 2 ranks in each pod, more than the endpoint has ports")
    await short.close()
    attach = await scene.user.start("attach", f"k8s:pytorchjob/{NAME}:5678+2")
    client = await joined(attach, {COUNTING: [{"line": COUNT}]}, attach={})
    entries = await listed(client, "line", *[COUNT] * 4)
    hosts = [name for name in [*PYTORCH.pods][:2] for _ in range(2)]
    assert [(each["rank"], each["host"]) for each in entries] == [*enumerate(hosts)]
    assert "ranks in each pod" not in attach.err


async def test_a_launcher_that_fails_is_named_and_ends_the_job(scene: Scene) -> None:
    _, attach, client = await attached(scene, MPI)
    (launcher,) = MPI.others
    await scene.cluster.pods[launcher].fails(1)
    await attach.says(f"pod {launcher} has failed: exit code 1 (Error)")
    for name in MPI.pods:  # its controller cleans up
        await scene.cluster.delete(name)
    scene.cluster.custom.ends("mpijobs", NAME, "Failed", "MPIJobFailed")
    await tour.over(client, attach, within=2 * LIMIT)
    assert f"MPIJob {NAME} has failed: MPIJobFailed" in attach.err
    again = await scene.user.does("attach", f"k8s:mpijob/{NAME}")
    assert again.code == 3
    assert f"MPIJob {NAME} has failed: MPIJobFailed" in again.err


async def test_a_job_that_is_deleted_is_over(scene: Scene) -> None:
    _, attach, client = await attached(scene, PYTORCH)
    del scene.cluster.custom.objects["pytorchjobs", NAME]
    for name in PYTORCH.pods:
        await scene.cluster.delete(name)
    await tour.over(client, attach, within=2 * LIMIT)
    assert f"PyTorchJob {NAME} was deleted" in attach.err
