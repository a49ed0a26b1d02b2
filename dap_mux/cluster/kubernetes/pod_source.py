"""Endpoints that name pods, and the source that finds, watches and reaches them.

k8s:trainer-0              one pod                 k8s:team/job/train     a job in a namespace
k8s:app=train,tier=gpu     pods with labels        k8s:job/train@prod     by another context
k8s:job/train:5678+4       four ranks in each pod  oc:...                 the same, preferring `oc`
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio

from dap_mux.cluster.kubernetes.job_kinds import (
    KINDS,
    JobKind,
    JobPods,
    NamedPods,
    Selection,
    well_formed,
)
from dap_mux.cluster.kubernetes.pod_forward import keep_forwarded
from dap_mux.cluster.kubernetes.pods import (
    FindPlace,
    Json,
    exit_code_of,
    failed_container,
    has_ended,
    has_failed,
    how_it_crashed,
    how_it_failed,
    key_of,
    missed,
    name_of,
    own_place,
    ranks_of,
    starts_of,
)
from dap_mux.cluster.kubernetes.tool import Changes, Tool, tool_for
from dap_mux.cluster.machines import Machine
from dap_mux.cluster.records import RankRecord, ports_of
from dap_mux.cluster.source import Description, Notify, OnReached, SourceSpec
from dap_mux.pure.errors import DapMuxError, NothingToConnect, UsageError

RIGHT_IN_A_POD: Final = (
    "its container's `securityContext: {capabilities: {add: [SYS_PTRACE]}}` allows it"
)

# Pods that are gone, and that are waited for because others may be made in their place.

REPLACEMENT_TIMEOUT_S: Final = 30.0


class MissedPods:
    """The missed pods, each until another has come or half a minute has passed."""

    def __init__(self, find_place: FindPlace = own_place) -> None:
        self._find_place = find_place
        self._missed: dict[str, tuple[Json, float]] = {}  # with the time until which it is waited

    def __bool__(self) -> bool:
        return bool(self._missed)

    @property
    def pods(self) -> list[Json]:
        """Their descriptions, the one that went first at the beginning."""
        return [pod for pod, _ in self._missed.values()]

    @property
    def deadlines(self) -> list[float]:
        """When each of them is given up, by the clock of `take`."""
        return [until for _, until in self._missed.values()]

    def take(self, before: Mapping[str, Json], pods: Mapping[str, Json], now: float) -> None:
        """Compare the pods of before with the present ones, both by name, at this time."""
        for name, pod in before.items():
            if waited_for := missed(pod, pods.get(name)):
                self._missed[name] = waited_for, now + REPLACEMENT_TIMEOUT_S
        for name, pod in pods.items():
            earlier = before.get(name)
            if earlier is None or not (has_ended(earlier) and has_ended(pod)):
                self._replaced_by(pod, is_new=earlier is None)
        self._missed = {name: each for name, each in self._missed.items() if each[1] > now}

    def _replaced_by(self, pod: Json, *, is_new: bool) -> None:
        """Miss no longer what this pod stands for: itself, its place, or any without a number."""
        if not has_ended(pod):
            self._missed.pop(name_of(pod), None)
        place = key_of(pod, self._find_place)
        if place or is_new:
            others = (each for each in self.pods if name_of(each) != name_of(pod))
            same = [name_of(each) for each in others if key_of(each, self._find_place) == place]
            for name in same if place else same[:1]:
                del self._missed[name]


# Messages about pods that have failed or crashed.

MAX_NAMED: Final = 8  # pods in one report; a job of a thousand fails in one way


class PodFailures:
    """Messages that have not been reported yet."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._known: set[str] = set()
        self._failed: list[str] = []
        self._others: list[str] = []

    def see(self, pods: Iterable[Json]) -> None:
        """Add a message for each pod that has failed or crashed, once."""
        for pod in pods:
            failed, crash = has_failed(pod), how_it_crashed(pod)
            key = f"{pod['metadata'].get('uid', name_of(pod))}/{'' if failed else starts_of(pod)}"
            if (failed or crash) and key not in self._known:
                self._known.add(key)
                self._failed.append(self._failure(pod) if failed else self._crash(pod, crash))

    def add(self, text: str) -> None:
        """Add another message; '' is ignored."""
        self._others += filter(None, [text])

    def __bool__(self) -> bool:
        return bool(self._failed or self._others)

    def take(self) -> list[str]:
        """Return and clear the messages."""
        named, more = self._failed[:MAX_NAMED], len(self._failed) - MAX_NAMED
        told = [
            *named,
            *([f"{more} more pods have failed or crashed"] if more > 0 else []),
            *self._others,
        ]
        self._failed, self._others = [], []
        return told

    def _failure(self, pod: Json) -> str:
        how = how_it_failed(pod)
        return f"pod {name_of(pod)} has failed{f': {how}' if how else ''}; see {self._logs(pod)}"

    def _crash(self, pod: Json, how: str) -> str:
        logs = self._logs(pod, "--previous")
        return f"pod {name_of(pod)} has ended with {how}, and will be restarted; see {logs}"

    def _logs(self, pod: Json, *how: str) -> str:
        container = failed_container(pod)
        which = ("-c", container) if container else ()
        return f"`{self._tool.command('logs', *how, name_of(pod), *which)}`"


RELIST_INTERVAL_S: Final = 120.0  # between full lists, in case a change was missed
POLL_INTERVAL_S: Final = 5.0  # s between two lists where watching is not allowed
EXAMPLES: Final = (
    "k8s:trainer-0, k8s:job/train, k8s:pytorchjob/train, k8s:team/app=train:5678+4, "
    "k8s:job/train@context"
)

# A context of OpenShift looks like `project/api-example-com:6443/me`.
KIND: Final = "|".join([*KINDS, "pod"])
NAME: Final = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
# Each label may have a prefix of its own: `ray.io/cluster=train,ray.io/node-type=worker`
LABELS: Final = r"[^@/:=]+(?:/[^@/:=]+)?=[^@/:]*(?:,[^@/:=,]+/[^@/:=,]+=[^@/:]*)*"
WORD: Final = re.compile(
    # a namespace has no dots; what has them before a slash is a label's own prefix
    rf"(?:(?P<namespace>(?!(?:{KIND})/)[a-z0-9]([a-z0-9-]*[a-z0-9])?)/)?"
    rf"(?:(?P<kind>{KIND})/)?(?:(?P<labels>{LABELS})|(?P<name>{NAME}))"
    r"(?:@(?P<context>.+?))?"
    r"(?::(?P<first>[0-9]+)(?:-(?P<last>[0-9]+)|\+(?P<count>[0-9]+))?)?",
    re.ASCII,
)


@dataclass(frozen=True)
class PodSelection:
    """The pods that an endpoint selects, and the ports on which their ranks listen.

    They are those of the `job` of a `kind`, or else those that kubectl's `arguments` select.
    """

    ports: range
    names_ports: bool
    namespace: str | None = None
    context: str | None = None
    arguments: tuple[str, ...] = ()
    kind: JobKind | None = None
    job: str = ""

    def by(self, tool: Tool) -> Selection:
        """Return what finds them."""
        if self.kind:
            return JobPods(tool, self.kind, self.job)
        return NamedPods(self.arguments, by_name=self.arguments[0] == "--selector")


def read(word: SourceSpec) -> PodSelection:
    """Read what follows `k8s:` or `oc:`. Raises `UsageError`."""
    match = WORD.fullmatch(word.rest)
    if match is None or (match["labels"] and match["kind"]):
        raise UsageError(f"{word}: not a selection of pods; one looks like {EXAMPLES}")
    common = PodSelection(
        ports_of(match, word),
        names_ports=match["first"] is not None,
        namespace=match["namespace"],
        context=match["context"],
    )
    if match["labels"]:
        return replace(common, arguments=("--selector", match["labels"]))
    if kind := KINDS.get(match["kind"]):
        return replace(common, kind=kind, job=match["name"])
    return replace(common, arguments=("--field-selector", f"metadata.name={match['name']}"))


def _spell(parts: Mapping[str, str]) -> str:
    """Return the pods of a `cluster` object. Raises `UsageError`."""
    namespace, context = parts["namespace"], parts["context"]
    job, pod = parts["job"], parts["pod"]
    which = _job(job) if job else f"pod/{pod}" if pod else parts["selector"]
    return (f"{namespace}/" if namespace else "") + which + (f"@{context}" if context else "")


def _job(job: str) -> str:
    """Return `job/train`, or `pytorchjob/train` as it is: an operator's job is named with its kind.

    Another first part would be taken for a namespace.
    """
    kind, _, name = job.rpartition("/")
    if not kind:
        return f"job/{name}"
    if kind not in KINDS:
        raise UsageError(f"`cluster`: job {job!r} is of no known kind: {', '.join(KINDS)}")
    return job


class Kubernetes:
    """A `Source`: pods of a cluster, through kubectl or oc."""

    description = Description(
        help=f"k8s:job/NAME (or {', '.join(f'{kind}/' for kind in KINDS if kind != 'job')})",
        tunnels=("port-forward",),
        tunnel_to="NAMESPACE/POD",
        names=("pod", "job", "selector"),
        others=("namespace", "context"),
        spell=_spell,
    )
    lingers = 10.0  # by then the cluster reports that it restarts a container

    def __init__(self, word: SourceSpec) -> None:
        self._word = word
        self._wanted = read(word)
        self._tool: Tool = tool_for(word.scheme, self._wanted.namespace, self._wanted.context)
        self._selection = self._wanted.by(self._tool)
        self._pods: Mapping[str, Json] = {}
        self._missed = MissedPods(self._selection.find_place)
        self._yielded: Sequence[RankRecord] = ()  # the ranks as the session was last told
        self._local: dict[tuple[str, int], int] = {}
        self._news = PodFailures(self._tool)
        self._told_ranks = False
        self._job_end = ""  # how it ended, once it will not start more pods
        self.names_ports = self._wanted.names_ports

    async def machines(self) -> Sequence[Machine]:
        """Return the pods."""
        waits = {record.host: record.waits for record in await self.discover()}
        return [
            Machine(
                name=f"pod {pod}",
                reach=partial(self._tool.exec_command, pod),
                everybody=True,
                right=RIGHT_IN_A_POD,
                down=why,
            )
            for pod, why in waits.items()
        ]

    async def discover(self) -> Sequence[RankRecord]:
        """Return the ranks of the present pods. Raises `DapMuxError`, with advice."""
        ranks = await self._look()
        if self._job_end:
            raise NothingToConnect("; ".join(self._news.take()))
        self._yielded = ranks
        return ranks

    def notices(self) -> Sequence[str]:
        """Return the pods that have failed since the last call, and how."""
        return self._news.take()

    def exit_code(self, record: RankRecord) -> int | None:
        """Return that of its pod, unless other ranks share the pod."""
        pod = self._pods.get(record.host)
        return exit_code_of(pod) if pod and len(self._wanted.ports) == 1 else None

    async def _look(self) -> Sequence[RankRecord]:
        try:
            await self._selection.look()
        except DapMuxError:
            await self._check_namespace()
            raise
        self._count_ports(self._selection.ranks_per_pod)
        selected = self._selection.arguments
        pods = await self._tool.pods(selected) if selected else []
        self._take({name_of(pod): pod for pod in pods})
        if not self._pods:
            await self._check_namespace()
        before, self._job_end = self._job_end, await self._end_of_job()
        if self._job_end != before:
            self._news.add(self._job_end)
        return self._ranks()

    def _count_ports(self, ranks: int) -> None:
        """Tell once if a job has more ranks in each pod than the endpoint names."""
        ports = self._wanted.ports
        if ranks > len(ports) and not self._told_ranks:
            self._told_ranks = True
            self._news.add(
                f"the job has {ranks} ranks in each pod, more than the endpoint has ports: end it "
                f"with :{ports[0]}+{ranks} to reach all of them"
            )

    async def _check_namespace(self) -> None:
        if self._wanted.namespace:
            await self._tool.check_namespace(self._wanted.namespace)

    def _rests(self) -> bool:
        """Whether it is a job whose pods have all ended: it is over, or about to start others."""
        seen = bool(self._pods or self._missed)
        return self._selection.is_over(seen=seen) and all(map(has_ended, self._pods.values()))

    async def _end_of_job(self) -> str:
        return await self._selection.end() if self._rests() else ""

    def _take(self, pods: Mapping[str, Json]) -> None:
        """Replace the pods; some that are gone are waited for, as others may replace them."""
        with well_formed(self._malformed):
            self._missed.take(self._pods, pods, anyio.current_time())
        self._pods = pods
        self._news.see(pods.values())

    def _ranks(self) -> list[RankRecord]:
        if self._job_end:
            return []
        pods = [*self._pods.values(), *self._missed.pods]
        find_place, by_name = self._selection.find_place, self._selection.by_name
        with well_formed(self._malformed):
            return ranks_of(pods, self._wanted.ports, by_name=by_name, find_place=find_place)

    @property
    def _malformed(self) -> str:
        return f"{self._tool.name}: malformed description of a pod"

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield the ranks whenever they have changed; poll where watching is not allowed.

        What a look has found that failed halfway is yielded by the next one.
        """
        while True:
            began = anyio.current_time()
            if self._is_new(now := await self._look()):
                yield now
            if selected := self._selection.arguments:
                async with self._tool.watching(selected) as changes:
                    async for now in self._changed(changes, began):
                        if self._is_new(now):
                            yield now
            if anyio.current_time() < began + POLL_INTERVAL_S:  # watching is not allowed
                await anyio.sleep(POLL_INTERVAL_S)

    def _is_new(self, ranks: Sequence[RankRecord]) -> bool:
        """Whether the session has to be told of these ranks, as it is then.

        It ends when it is told of none: if the job goes on, raises `NothingToConnect` with the
        reason why there are none now, and keeps those that it knows.
        """
        if not ranks and not self._job_end and self._selection.goes_on:
            if why := "; ".join(filter(None, [*self._news.take(), self._selection.waits])):
                raise NothingToConnect(why)
            return False
        before, self._yielded = self._yielded, ranks
        return ranks != before or bool(self._news)

    async def _changed(self, changes: Changes, began: float) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield the ranks after each event of a watch, and once after listing all pods again: the
        watch begins with a list of its own, and misses a pod that went in between."""
        listed, watched = False, self._selection.arguments
        while True:
            limits = [began + (RELIST_INTERVAL_S if listed else POLL_INTERVAL_S)]
            limits += self._missed.deadlines
            if self._rests():  # pods do not report the end of their job
                limits.append(anyio.current_time() + POLL_INTERVAL_S)
            event = await changes.next(before=min(limits))
            if event is not None:
                self._apply(event)
                yield self._ranks()
                continue
            if changes.over or anyio.current_time() >= began + RELIST_INTERVAL_S:
                return
            listed = True
            yield await self._look()
            if self._selection.arguments != watched:
                return

    def _apply(self, event: Json) -> None:
        """Apply one event of a watch; anything but a pod is an error, which ends the watch."""
        pod = event.get("object")
        if not isinstance(pod, dict) or pod.get("kind") != "Pod":
            return
        others = {name: each for name, each in self._pods.items() if name != name_of(pod)}
        deleted = event.get("type") == "DELETED"
        self._take(others if deleted else {**others, name_of(pod): pod})

    @asynccontextmanager
    async def reach(
        self, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> AsyncIterator[None]:
        """Forward the ports of one pod."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_forwarded, self._tool, records, self._local, changed, tell)
            yield
            tasks.cancel_scope.cancel()
