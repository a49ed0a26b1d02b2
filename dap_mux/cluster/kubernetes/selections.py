"""Which pods an endpoint means now, and their places: pods by name or label, or those of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dap_mux.cluster.kubernetes.job_kinds import JobKind
from dap_mux.cluster.kubernetes.pod_ranks import Place, own_place
from dap_mux.cluster.kubernetes.pods import Json
from dap_mux.cluster.kubernetes.tool import NoSuchObject, Tool
from dap_mux.errors import NothingToConnect, UsageError

MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError)  # of what a server answers


class NamedPods:
    """Pods by name or label, which belong to no job that we know of; compare `JobPods`."""

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
        self._check()

    def _check(self) -> None:
        try:
            self._kind.end(self._object)
            _ = self.waits, self.arguments, self.ranks_per_pod
        except MALFORMED as error:
            self._object = {}
            raise self._malformed(error) from None

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
        try:
            how = "was deleted" if self._deleted else self._kind.end(self._object)
        except MALFORMED as error:
            raise self._malformed(error) from None
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

    def _malformed(self, error: Exception) -> UsageError:
        return UsageError(
            f"{self._tool.name} get {self._kind.resource}: malformed response: {error!r}"
        )


Selection: TypeAlias = NamedPods | JobPods
"""The pods of an endpoint."""
