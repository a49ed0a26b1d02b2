"""The kinds of jobs that an endpoint can name: Kubernetes' own, and those of training operators.

Each row of `KINDS` says which label a kind's controller puts on pods, which pods are ranks, with
which numbers, and how the job has ended. Another operator is one more row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from dap_mux.cluster.kubernetes.pods import (
    COMPLETION_INDEX,
    MAX_TEXT,
    Json,
    Place,
    annotations_of,
    labels_of,
    number_in,
    own_place,
)
from dap_mux.cluster.kubernetes.tool import NoSuchObject, Tool
from dap_mux.cluster.records import group_name
from dap_mux.pure.errors import NothingToConnect, UsageError
from dap_mux.pure.printable import one_line

# Kubeflow's training operator, and its MPI operator.
KUBEFLOW_JOB: Final = "training.kubeflow.org/job-name"
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
ROLES: Final = ("training.kubeflow.org/replica-type", "training.kubeflow.org/job-role")
# JobSet
JOBSET: Final = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
# KubeRay
RAY_CLUSTER: Final = "ray.io/cluster"
RAY_NODE: Final = "ray.io/node-type"
RAY_GROUP: Final = "ray.io/group"

DONE: Final = ("Complete", "Completed", "Succeeded")  # conditions
RAY_ENDED: Final = ("Complete", "Failed", "ValidationFailed")

_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,62}", re.ASCII)

FindPlaceIn: TypeAlias = Callable[[Json, Json], "Place | None"]
"""Return a pod's place in a job; None for a pod that is no rank."""


def _end_by_conditions(job: Json) -> str:
    """Return `has failed: BackoffLimitExceeded`, or '' while the job continues."""
    true = _true_conditions(job)
    if "Failed" in true:
        reason = true["Failed"].get("reason")
        return "has failed" + (f": {_text(reason)}" if reason else "")
    return "is complete" if any(each in true for each in DONE) else ""


def _suspended(job: Json) -> str:
    return "is suspended" if "Suspended" in _true_conditions(job) else ""


def _one(_job: Json) -> int:
    return 1


def _true_conditions(job: Json) -> dict[str, Json]:
    conditions = (job.get("status") or {}).get("conditions") or []
    return {str(each["type"]): each for each in conditions if each["status"] == "True"}


def _text(value: object) -> str:
    return one_line(str(value))[:MAX_TEXT]


@dataclass(frozen=True)
class JobKind:
    """A kind of job. `name` is what its users call it, `resource` what kubectl does.

    `label`: of its pods. `operator`: what installs the kind, '' for Kubernetes itself. The
    functions are given the job's object, which is empty without the permission to read it.
    """

    name: str
    resource: str
    label: str
    find_place: FindPlaceIn
    operator: str = ""
    end: Callable[[Json], str] = _end_by_conditions
    waits: Callable[[Json], str] = _suspended
    ranks_per_pod: Callable[[Json], int] = _one
    cluster: Callable[[Json], str] | None = None
    """The value of the label, where it is not the job's own name; '' if it has none yet."""


def _ranks_said_in(*fields: str) -> Callable[[Json], int]:
    """Return what reads the number of ranks in each pod; 1 where it is not a number."""
    return lambda job: number_in(job.get("spec") or {}, *fields) or 1


# Kubeflow


def _pytorch_place(pod: Json, job: Json) -> Place | None:
    """The master is rank 0, before the workers; an elastic job has only workers."""
    index = number_in(labels_of(pod), REPLICA_INDEX)
    role = _role_of(pod)
    if role == "master":
        return Place(number=0)
    if role != "worker" or index is None:
        return own_place(pod)
    roles = {name.lower() for name in (job.get("spec") or {}).get("pytorchReplicaSpecs") or ()}
    return Place(number=index + (0 if roles and "master" not in roles else 1))


def _mpi_place(pod: Json, job: Json) -> Place | None:
    """The launcher starts the ranks, which run in the workers, and in it only where it says so.

    Then it is the first, and the workers' labels count from 1.
    """
    if _role_of(pod) == "launcher":
        is_worker = (job.get("spec") or {}).get("runLauncherAsWorker") is True
        return Place(number=0) if is_worker else None
    return Place(number=number_in(labels_of(pod), REPLICA_INDEX))


def _role_of(pod: Json) -> str:
    """Return `master`, `worker` or `launcher`: by the older label, else the newer one."""
    labels = labels_of(pod)
    return next((str(labels[key]).lower() for key in ROLES if labels.get(key)), "")


# JobSet


def _jobset_place(pod: Json, job: Json) -> Place | None:
    """A group for each replicated job, whose jobs follow one another in it."""
    notes = {**annotations_of(pod), **labels_of(pod)}
    replicated = str(notes.get(REPLICATED_JOB, ""))
    index, job_index = number_in(notes, COMPLETION_INDEX), number_in(notes, JOB_INDEX) or 0
    size = _completions(job, replicated)
    if index is None or (job_index and size is None):
        return Place(group_name(replicated))  # in the order of names
    return Place(group_name(replicated), job_index * (size or 0) + index)


def _completions(job: Json, replicated: str) -> int | None:
    """Return the number of pods in each job of a replicated job; None if that is unknown."""
    for each in (job.get("spec") or {}).get("replicatedJobs") or []:
        if each.get("name") == replicated:
            spec = each["template"]["spec"]
            return int(spec.get("completions") or spec.get("parallelism") or 1)
    return None


# KubeRay


def _ray_place(pod: Json, _job: Json) -> Place | None:
    """The head, and a group for each group of workers, which have no numbers of their own."""
    labels = labels_of(pod)
    if labels.get(RAY_NODE) == "head":
        return Place("head", 0)
    return Place(group_name(str(labels.get(RAY_GROUP) or "worker")))


def _ray_cluster(job: Json) -> str:
    """Return the name of its cluster, '' if it has none yet. Raises `ValueError` for no name."""
    name = str((job.get("status") or {}).get("rayClusterName") or "")
    if name and not _LABEL_VALUE.fullmatch(name):
        raise ValueError(f"status.rayClusterName is {_text(name)!r}")
    return name


def _ray_end(job: Json) -> str:
    """Its deployment says whether it is over, its job how."""
    status = job.get("status") or {}
    deployment, outcome = status.get("jobDeploymentStatus"), status.get("jobStatus")
    if deployment not in RAY_ENDED:
        return ""
    if deployment == "Complete" and outcome != "FAILED":
        return "is complete" if outcome == "SUCCEEDED" else f"has ended: {_text(outcome)}"
    why = status.get("reason") or status.get("message") or outcome
    return "has failed" + (f": {_text(why)}" if why else "")


def _ray_waits(job: Json) -> str:
    if _ray_cluster(job):
        return ""
    state = (job.get("status") or {}).get("jobDeploymentStatus")
    return "has no Ray cluster yet" + (f" ({_text(state)})" if state else "")


JOB: Final = JobKind("job", "job", "job-name", lambda pod, _job: own_place(pod))
TRAINING_OPERATOR: Final = "Kubeflow's training operator"
KINDS: Final = {
    "job": JOB,
    "pytorchjob": JobKind(
        "PyTorchJob",
        "pytorchjobs.kubeflow.org",
        KUBEFLOW_JOB,
        _pytorch_place,
        operator=TRAINING_OPERATOR,
        ranks_per_pod=_ranks_said_in("nprocPerNode"),
    ),
    "mpijob": JobKind(
        "MPIJob",
        "mpijobs.kubeflow.org",
        KUBEFLOW_JOB,
        _mpi_place,
        operator="Kubeflow's MPI operator or training operator",
        ranks_per_pod=_ranks_said_in("slotsPerWorker"),
    ),
    "jobset": JobKind(
        "JobSet", "jobsets.jobset.x-k8s.io", JOBSET, _jobset_place, operator="JobSet's controller"
    ),
    "rayjob": JobKind(
        "RayJob",
        "rayjobs.ray.io",
        RAY_CLUSTER,
        _ray_place,
        operator="KubeRay",
        end=_ray_end,
        waits=_ray_waits,
        cluster=_ray_cluster,
    ),
}


# Which pods an endpoint means now, and their places: pods by name or label, or those of a job.


@contextmanager
def well_formed(what: str) -> Iterator[None]:
    """Raise `UsageError` where the block meets a server's answer of another shape."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{what}: {error!r}") from None


@dataclass(frozen=True)
class NamedPods:
    """Pods by name or label, which belong to no job that we know of; compare `JobPods`."""

    arguments: Sequence[str]
    by_name: bool
    waits: ClassVar = ""
    goes_on: ClassVar = False
    ranks_per_pod: ClassVar = 1

    async def look(self) -> None:
        """Nothing has to be looked up."""

    def find_place(self, pod: Json) -> Place | None:
        """Return what the pod itself says."""
        return own_place(pod)

    def is_over(self, *, seen: bool) -> bool:
        """Never: others may be started."""
        return False

    async def end(self) -> str:
        """Return nothing: there is no job."""
        return ""


class JobPods:
    """The pods of a job.

    The job of an operator is read at each look: it says which pods are ranks. One of Kubernetes
    itself only once its pods have ended, as its pods say everything else.

    `by_name`: the number at the end of a pod's name is its rank, if nothing else tells it.
    """

    def __init__(self, tool: Tool, kind: JobKind, name: str) -> None:
        self._tool = tool
        self._kind = kind
        self._name = name
        self._object: Json = {}
        self._deleted = False
        self.by_name = not kind.operator

    @property
    def arguments(self) -> Sequence[str]:
        """kubectl's arguments, by the kind's label; none if there cannot be any pods yet."""
        value = self._kind.cluster(self._object) if self._kind.cluster else self._name
        return ("--selector", f"{self._kind.label}={value}") if value else ()

    async def look(self) -> None:
        """Read the job, if it is an operator's. Raises `NothingToConnect` if there is none."""
        if not self._kind.operator:
            return
        try:
            job = await self._tool.read(self._kind.resource, self._name, self._kind.operator)
        except NoSuchObject:
            if not self._object:
                raise
            self._deleted = True
            return
        if job is None and self._kind.cluster:
            raise NothingToConnect(
                f"{self._tool.name}: you may not read {self._kind.resource}, which tell the pods "
                f"of {self._kind.name} {self._name}: ask for the permission, or name them by "
                f"their label, as in k8s:{self._kind.label}=NAME"
            )
        self._object, self._deleted = job or {}, False
        try:
            with well_formed(self._malformed):
                self._kind.end(self._object)
                _ = self.waits, self.arguments, self.ranks_per_pod
        except UsageError:
            self._object = {}
            raise

    def find_place(self, pod: Json) -> Place | None:
        """Return the pod's place in the job; None for a pod that is no rank."""
        return self._kind.find_place(pod, self._object)

    def is_over(self, *, seen: bool) -> bool:
        """Whether the end of all pods may be its end; `seen`: there were some.

        An operator's says so itself, also where its pods are gone.
        """
        return seen or bool(self._kind.operator)

    async def end(self) -> str:
        """Describe how it has ended: `job train has failed: BackoffLimitExceeded`.

        '' while it goes on. Call it after all pods' end.
        """
        if not self._kind.operator:
            self._object = await self._tool.read_if_allowed(self._kind.resource, self._name)
        with well_formed(self._malformed):
            how = "was deleted" if self._deleted else self._kind.end(self._object)
        return f"{self._kind.name} {self._name} {how}" if how else ""

    @property
    def goes_on(self) -> bool:
        """Whether it is there and says itself how it ends: it may have no pods meanwhile."""
        return bool(self._kind.operator and self._object) and not self._deleted

    @property
    def ranks_per_pod(self) -> int:
        """The number that an operator's job says."""
        return self._kind.ranks_per_pod(self._object)

    @property
    def waits(self) -> str:
        """`RayJob train has no Ray cluster yet (Initializing)`; '' if its pods are to come."""
        why = self._kind.waits(self._object) if self._object else ""
        return f"{self._kind.name} {self._name} {why}" if why else ""

    @property
    def _malformed(self) -> str:
        return f"{self._tool.name} get {self._kind.resource}: malformed response"


Selection: TypeAlias = NamedPods | JobPods
"""The pods of an endpoint."""
