"""The kinds of jobs of training operators: places of their pods by labels, and their ends."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.cluster.endpoints import read_endpoint
from dap_mux.cluster.kubernetes.job_kinds import KINDS
from dap_mux.cluster.kubernetes.pod_source import MissedPods, read
from dap_mux.cluster.kubernetes.pods import Place, name_of, ranks_of
from dap_mux.cluster.records import group_name
from dap_mux.cluster.source import SourceSpec
from dap_mux.rank.api import word_of

Json = dict[str, Any]
KUBEFLOW = "training.kubeflow.org"
MASTER_AND_WORKERS: Json = {"spec": {"pytorchReplicaSpecs": {"Master": {}, "Worker": {}}}}
ELASTIC: Json = {"spec": {"pytorchReplicaSpecs": {"Worker": {}}}}
LAUNCHER_WORKS: Json = {"spec": {"runLauncherAsWorker": True}}
TWO_OF_TWO: Json = {
    "spec": {
        "replicatedJobs": [
            {"name": "driver", "replicas": 1, "template": {"spec": {}}},
            {"name": "workers", "replicas": 2, "template": {"spec": {"completions": 2}}},
            {"name": "spares", "replicas": 2, "template": {"spec": {"parallelism": 3}}},
        ]
    }
}


def pod(name: str = "x", env: str | None = None, **labels: str) -> Json:
    spelled = {key.replace("__", "/").replace("_", "-"): text for key, text in labels.items()}
    variables = [{"name": "RANK", "value": env}] if env else []
    return {
        "metadata": {"name": name, "labels": spelled},
        "spec": {"containers": [{"env": variables}]},
        "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]},
    }


def kubeflow(index: str | None, key: str = "replica-type", role: str = "", **more: Any) -> Json:
    made = pod(**more)
    labels = {f"{KUBEFLOW}/{key}": role}
    if index is not None:
        labels[f"{KUBEFLOW}/replica-index"] = index
    made["metadata"]["labels"] = labels
    return made


def jobset(replicated: str, job: str, index: str | None, name: str = "x") -> Json:
    made = pod(name)
    made["metadata"]["labels"] = {
        "jobset.sigs.k8s.io/replicatedjob-name": replicated,
        "jobset.sigs.k8s.io/job-index": job,
    }
    notes = {"batch.kubernetes.io/job-completion-index": index} if index else {}
    made["metadata"]["annotations"] = notes
    return made


def ray(kind: str, group: str = "", name: str = "x") -> Json:
    made = pod(name)
    made["metadata"]["labels"] = {"ray.io/node-type": kind, "ray.io/group": group}
    return made


@pytest.mark.parametrize(
    ("kind", "one", "job", "place"),
    [
        ("pytorchjob", kubeflow("0", role="master"), MASTER_AND_WORKERS, Place(number=0)),
        ("pytorchjob", kubeflow("2", role="Worker"), MASTER_AND_WORKERS, Place(number=3)),
        ("pytorchjob", kubeflow("2", role="worker"), ELASTIC, Place(number=2)),
        ("pytorchjob", kubeflow("2", role="worker"), {}, Place(number=3)),
        ("pytorchjob", kubeflow(None, role="", env="5"), {}, Place(number=5)),
        ("pytorchjob", kubeflow("x", role="worker"), {}, Place()),
        ("mpijob", kubeflow("1", role="worker"), {}, Place(number=1)),
        ("mpijob", kubeflow("1", "job-role", "worker"), {}, Place(number=1)),
        ("mpijob", kubeflow("0", role="launcher"), {}, None),
        ("mpijob", kubeflow(None, "job-role", "launcher"), {}, None),
        ("mpijob", kubeflow("0", "job-role", "launcher"), LAUNCHER_WORKS, Place(number=0)),
        ("jobset", jobset("driver", "0", "0"), TWO_OF_TWO, Place("driver", 0)),
        ("jobset", jobset("workers", "0", "1"), TWO_OF_TWO, Place("workers", 1)),
        ("jobset", jobset("workers", "1", "1"), TWO_OF_TWO, Place("workers", 3)),
        ("jobset", jobset("spares", "1", "1"), TWO_OF_TWO, Place("spares", 4)),
        ("jobset", jobset("workers", "1", None), TWO_OF_TWO, Place("workers")),
        ("jobset", jobset("workers", "0", "1"), {}, Place("workers", 1)),
        ("jobset", jobset("workers", "1", "1"), {}, Place("workers")),
        ("rayjob", ray("head", "headgroup"), {}, Place("head", 0)),
        ("rayjob", ray("worker", "gpu-group"), {}, Place("gpu-group")),
        ("rayjob", ray("worker"), {}, Place("worker")),
    ],
)
def test_the_place_of_a_pod(kind: str, one: Json, job: Json, place: Place | None) -> None:
    assert KINDS[kind].find_place(one, job) == place


def test_a_number_of_the_cluster_is_one_of_a_few_digits() -> None:
    """An int of thousands of digits is refused by Python itself, and other digits are letters."""
    for index in ("9" * 5000, "-1", "٣", "1.5", ""):
        assert KINDS["mpijob"].find_place(kubeflow(index, role="worker"), {}) == Place()


def test_without_the_jobset_ranks_stand_in_the_order_of_names() -> None:
    pods = [
        jobset("workers", str(job), str(index), f"js-workers-{job}-{index}-{index}x{job}")
        for job in (1, 0)
        for index in (1, 0)
    ]
    find_place = KINDS["jobset"].find_place
    found = ranks_of(pods, range(1, 2), by_name=False, find_place=lambda one: find_place(one, {}))
    assert [(each.group, each.rank) for each in found] == [("workers", None)] * 4
    hosts = ["js-workers-0-0-0x0", "js-workers-0-1-1x0", "js-workers-1-0-0x1", "js-workers-1-1-1x1"]
    assert [each.host for each in found] == hosts


def test_ranks_count_on_in_each_group() -> None:
    pods = [jobset("workers", "1", "0", "b"), jobset("driver", "0", "0", "a")]
    find_place = KINDS["jobset"].find_place
    found = ranks_of(
        pods, range(1, 3), by_name=False, find_place=lambda one: find_place(one, TWO_OF_TWO)
    )
    assert [(each.group, each.rank, each.host) for each in found] == [
        ("driver", 0, "a"),
        ("driver", 1, "a"),
        ("workers", 4, "b"),
        ("workers", 5, "b"),
    ]


def test_a_pod_is_replaced_by_the_one_in_its_place_of_its_group() -> None:
    """Each job of a set has a pod of index 0."""
    find_place = KINDS["jobset"].find_place
    pods = MissedPods(lambda one: find_place(one, TWO_OF_TWO))
    lost, other = jobset("workers", "1", "0", "lost"), jobset("workers", "0", "0", "other")
    driver, again = jobset("driver", "0", "0", "driver"), jobset("workers", "1", "0", "again")
    pods.take({"lost": lost}, {"other": other, "driver": driver}, 0)
    assert [name_of(each) for each in pods.pods] == ["lost"]
    pods.take({"other": other, "driver": driver}, {"again": again, "other": other}, 1)
    assert [name_of(each) for each in pods.pods] == ["driver"]


def conditions(*true: tuple[str, str], false: str = "Running") -> Json:
    said = [{"type": kind, "status": "True", "reason": why} for kind, why in true]
    return {"status": {"conditions": [{"type": false, "status": "False"}, *said]}}


def of_ray(**status: str) -> Json:
    return {"status": status}


@pytest.mark.parametrize(
    ("kind", "job", "how"),
    [
        ("job", {}, ""),
        ("job", conditions(("Complete", "")), "is complete"),
        ("pytorchjob", conditions(("Running", "PyTorchJobRunning")), ""),
        ("pytorchjob", conditions(false="Failed"), ""),
        ("pytorchjob", conditions(("Succeeded", "PyTorchJobSucceeded")), "is complete"),
        ("mpijob", conditions(("Failed", "MPIJobFailed")), "has failed: MPIJobFailed"),
        ("jobset", conditions(("Completed", "AllJobsCompleted")), "is complete"),
        ("jobset", conditions(("Failed", "Reached\nmax")), r"has failed: Reached\nmax"),
        ("rayjob", of_ray(jobDeploymentStatus="Running", jobStatus="FAILED"), ""),
        ("rayjob", of_ray(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"), "is complete"),
        ("rayjob", of_ray(jobDeploymentStatus="Complete", jobStatus="STOPPED"),
         "has ended: STOPPED"),
        ("rayjob", of_ray(jobDeploymentStatus="Complete", jobStatus="FAILED"),
         "has failed: FAILED"),
        ("rayjob", of_ray(jobDeploymentStatus="Failed", reason="DeadlineExceeded"),
         "has failed: DeadlineExceeded"),
    ],
)  # fmt: skip
def test_how_a_job_has_ended(kind: str, job: Json, how: str) -> None:
    assert KINDS[kind].end(job) == how


@pytest.mark.parametrize(
    ("name", "group"),
    [("gpu-8.a", "gpu-8.a"), ("_x", "_x"), ("8-gpu", "group-8-gpu"), ("é b:c", "group---b-c"),
     ("", "group-")],
)  # fmt: skip
def test_the_name_of_a_group_can_be_typed(name: str, group: str) -> None:
    assert group_name(name) == group
    assert read_endpoint(f"{group}=node1:5678").group == group


@pytest.mark.parametrize(
    ("kind", "spec", "ranks"),
    [
        ("pytorchjob", {"nprocPerNode": "8"}, 8),
        ("pytorchjob", {"nprocPerNode": "gpu"}, 1),
        ("pytorchjob", {}, 1),
        ("mpijob", {"slotsPerWorker": 4}, 4),
        ("jobset", {"nprocPerNode": 4}, 1),
    ],
)
def test_the_ranks_in_each_pod(kind: str, spec: Json, ranks: int) -> None:
    assert KINDS[kind].ranks_per_pod({"spec": spec}) == ranks


@pytest.mark.parametrize(
    ("kind", "job", "why"),
    [
        ("pytorchjob", conditions(("Suspended", "JobSuspended")), "is suspended"),
        ("pytorchjob", conditions(), ""),
        ("rayjob", of_ray(jobDeploymentStatus="Initializing"),
         "has no Ray cluster yet (Initializing)"),
        ("rayjob", of_ray(rayClusterName="ray-x7k"), ""),
    ],
)  # fmt: skip
def test_why_a_job_has_no_pods_yet(kind: str, job: Json, why: str) -> None:
    assert KINDS[kind].waits(job) == why


# What a rank in a pod says of the way to it: words that `dap-mux attach` reads.

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


@pytest.mark.parametrize(
    ("environ", "hostname", "namespace", "port", "word"),
    [
        ({}, "trainer-0", "team", 5678, "k8s:team/trainer-0"),
        ({}, "trainer-0", "", 5681, "k8s:trainer-0:5681"),
        ({"JOB_COMPLETION_INDEX": "3"}, "train-3", "team", 5678, "k8s:team/job/train"),
        ({"JOB_COMPLETION_INDEX": "3"}, "node7", "", 5678, "k8s:node7"),
        (
            {"JOB_COMPLETION_INDEX": "3", "POD_NAME": "train-3-x7k", "POD_NAMESPACE": "mine"},
            "train-3",
            "team",
            5678,
            "k8s:mine/train-3-x7k",
        ),
    ],
)
def test_the_way_to_a_pod(
    environ: dict[str, str], hostname: str, namespace: str, port: int, word: str
) -> None:
    assert word_of({**IN_A_POD, **environ}, hostname, namespace, port) == word
    assert port in read(SourceSpec("k8s", word.partition(":")[2])).ports


def test_elsewhere_an_address_does() -> None:
    assert word_of({"JOB_COMPLETION_INDEX": "3"}, "train-3", "team", 5678) is None
