"""Which pods an endpoint means now, and their places: pods by name or label, or those of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from dap_mux.cluster.kubernetes.job_kinds import JobKind
from dap_mux.cluster.kubernetes.pod_ranks import Place, own_place
from dap_mux.cluster.kubernetes.pods import Json
from dap_mux.cluster.kubernetes.tool import NoSuchObject, Tool
from dap_mux.errors import NothingToConnect, UsageError

MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError)  # of what a server answers


class Selection(Protocol):
    """The pods of an endpoint."""

    @property
    def by_name(self) -> bool:
        """Whether the number at the end of a pod's name is its rank, if nothing else tells it."""

    @property
    def arguments(self) -> Sequence[str]:
        """kubectl's arguments that select the pods; none if there cannot be any yet."""

    async def look(self) -> None:
        """Find out which pods to select. Raises `DapMuxError`."""

    def find_place(self, pod: Json) -> Place | None:
        """Return a pod's place; None for a pod that is no rank."""

    def is_over(self, *, seen: bool) -> bool:
        """Whether the end of all pods may be the end of the job; `seen`: there were some."""

    async def end(self) -> str:
        """Describe how the job has ended; '' while it goes on. Call it after all pods' end."""

    @property
    def goes_on(self) -> bool:
        """Whether there is a job that says itself how it ends, and may have no pods meanwhile."""

    @property
    def ranks_per_pod(self) -> int:
        """The number of ranks that the job says it has in each pod, else 1."""

    @property
    def waits(self) -> str:
        """Why the job has no pods now, if the cluster says so."""


class NamedPods:
    """A `Selection` of pods by name or label, which belong to no job that we know of."""

    waits, goes_on, ranks_per_pod = "", False, 1

    def __init__(self, arguments: Sequence[str], *, by_name: bool) -> None:
        self.arguments = arguments
        self.by_name = by_name

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
    """A `Selection` of the pods of a job.

    The job of an operator is read at each look: it says which pods are ranks. One of Kubernetes
    itself only once its pods have ended, as its pods say everything else.
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
        """Select by the kind's label."""
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
        self._check()

    def _check(self) -> None:
        try:
            self._kind.end(self._object)
            _ = self.waits, self.arguments, self.ranks_per_pod
        except MALFORMED as error:
            self._object = {}
            raise self._malformed(error) from None

    def find_place(self, pod: Json) -> Place | None:
        """Return the pod's place in the job."""
        return self._kind.find_place(pod, self._object)

    def is_over(self, *, seen: bool) -> bool:
        """Whether it may be; an operator's says so itself, also where its pods are gone."""
        return seen or bool(self._kind.operator)

    async def end(self) -> str:
        """Describe how it has ended: `job train has failed: BackoffLimitExceeded`."""
        if not self._kind.operator:
            self._object = await self._tool.read_if_allowed(self._kind.resource, self._name)
        try:
            how = "was deleted" if self._deleted else self._kind.end(self._object)
        except MALFORMED as error:
            raise self._malformed(error) from None
        return f"{self._kind.name} {self._name} {how}" if how else ""

    @property
    def goes_on(self) -> bool:
        """Whether it is there, and may be read."""
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

    def _malformed(self, error: Exception) -> UsageError:
        return UsageError(
            f"{self._tool.name} get {self._kind.resource}: malformed response: {error!r}"
        )
