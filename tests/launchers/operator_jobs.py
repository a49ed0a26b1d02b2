"""Jobs of four ranks as training operators make and label them, on the tests' API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.launchers import tour
from tests.launchers.kube_scene import Scene
from tests.real.driving import COUNTING
from tests.support.kube_server import Pod
from tests.support.processes.commands import LIMIT

Json = dict[str, Any]
Labels = dict[str, str]
NAME: Final = "train"
KUBEFLOW: Final = "training.kubeflow.org"
JOBSET: Final = "jobset.sigs.k8s.io"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
CLUSTER: Final = f"{NAME}-raycluster-x7k"


def replica(role: str, index: int, kind: str) -> Labels:
    """The labels of Kubeflow's training operator."""
    return {
        f"{KUBEFLOW}/job-name": NAME,
        f"{KUBEFLOW}/operator-name": f"{kind}-controller",
        f"{KUBEFLOW}/replica-type": role,
        f"{KUBEFLOW}/replica-index": str(index),
    }


def mpi(role: str, index: int | None = None) -> Labels:
    """The labels of the MPI operator."""
    labels = {
        f"{KUBEFLOW}/job-name": NAME,
        f"{KUBEFLOW}/operator-name": "mpi-operator",
        f"{KUBEFLOW}/job-role": role,
    }
    return labels if index is None else {**labels, f"{KUBEFLOW}/replica-index": str(index)}


def replicated(name: str, job: int, index: int) -> Labels:
    """The labels of a pod of a JobSet, which the Job controller has added to."""
    return {
        f"{JOBSET}/jobset-name": NAME,
        f"{JOBSET}/replicatedjob-name": name,
        f"{JOBSET}/job-index": str(job),
        INDEX: str(index),
        "job-name": f"{NAME}-{name}-{job}",
    }


def ray(kind: str, group: str, cluster: str = CLUSTER) -> Labels:
    """The labels of KubeRay."""
    return {"ray.io/cluster": cluster, "ray.io/node-type": kind, "ray.io/group": group}


@dataclass(frozen=True)
class Operator:
    """A job of four ranks: its object, its pods in the order of ranks, and those without a rank.

    `rows`: group and number of each rank.
    """

    endpoint: str
    resource: str
    spec: Json
    status: Json
    pods: dict[str, Labels]
    rows: list[tuple[str, int]]
    others: dict[str, Labels]
    moves: bool = True
    """Whether a pod that is made again has another name."""


def in_one_group(group: str = "job") -> list[tuple[str, int]]:
    return [(group, rank) for rank in range(tour.RANKS)]


PYTORCH: Final = Operator(
    "pytorchjob",
    "pytorchjobs",
    {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}},
    {},
    {
        f"{NAME}-master-0": replica("master", 0, "pytorchjob"),
        **{f"{NAME}-worker-{n}": replica("worker", n, "pytorchjob") for n in range(3)},
    },
    in_one_group(),
    {},
    moves=False,
)
MPI: Final = Operator(
    "mpijob",
    "mpijobs",
    {"slotsPerWorker": 1},
    {},
    {f"{NAME}-worker-{n}": mpi("worker", n) for n in range(4)},
    in_one_group(),
    {f"{NAME}-launcher-k8x2p": mpi("launcher")},
    moves=False,
)
SET: Final = Operator(
    "jobset",
    "jobsets",
    {"replicatedJobs": [
        {"name": "driver", "replicas": 1, "template": {"spec": {"completions": 1}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2}}},
    ]},
    {},
    # One that has not come yet leaves its number free.
    {
        f"{NAME}-driver-0-0-b7xk2": replicated("driver", 0, 0),
        f"{NAME}-workers-0-1-q9dfm": replicated("workers", 0, 1),
        f"{NAME}-workers-1-0-2bq8s": replicated("workers", 1, 0),
        f"{NAME}-workers-1-1-p4wzt": replicated("workers", 1, 1),
    },
    [("driver", 0), ("workers", 1), ("workers", 2), ("workers", 3)],
    {},
)  # fmt: skip
RAY: Final = Operator(
    "rayjob",
    "rayjobs",
    {"entrypoint": "python train.py"},
    {"rayClusterName": CLUSTER, "jobDeploymentStatus": "Running", "jobStatus": "RUNNING"},
    {
        f"{CLUSTER}-head-5kq2d": ray("head", "headgroup"),
        **{f"{CLUSTER}-gpu-worker-{end}": ray("worker", "gpu") for end in ("2xk7b", "9fh4c")},
        f"{CLUSTER}-cpu-worker-7mz8q": ray("worker", "cpu"),
    },
    [("head", 0), ("gpu", 0), ("gpu", 1), ("cpu", 0)],
    {f"{NAME}-9xk2b": {"job-name": NAME, "ray.io/originated-from-cr-name": NAME}},
)


class Job:
    """A job of an operator, whose ranks count until they are told to end."""

    def __init__(self, scene: Scene, operator: Operator) -> None:
        self._scene = scene
        self._operator = operator
        self.done = scene.user.folder / "done"
        self.pods: dict[str, Pod] = {}

    def declare(self) -> None:
        """The user applies it."""
        one = self._operator
        self._scene.cluster.custom.put(one.resource, NAME, one.spec, one.status)

    async def start(self) -> None:
        """Its controller makes its pods."""
        for name, labels in self._operator.pods.items():
            await self.run(name, labels)
        for name, labels in self._operator.others.items():
            self._scene.cluster.add(name, labels=labels, controlled=True).runs()

    async def run(self, name: str, labels: Labels) -> None:
        pod = self._scene.cluster.add(name, labels=labels, controlled=True)
        await self._scene.run(pod, COUNTING, str(self.done))
        self.pods[name] = pod

    async def ends(self, **status: Any) -> None:
        """Every rank ends well, then the controller says so."""
        self.done.touch()
        assert [await pod.ended(within=LIMIT) for pod in self.pods.values()] == [0] * len(self.pods)
        custom = self._scene.cluster.custom
        if status:
            custom.objects[self._operator.resource, NAME]["status"] = status
        else:
            custom.ends(self._operator.resource, NAME, "Succeeded")
