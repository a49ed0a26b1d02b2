"""Reads descriptions of pods: whether they run, how they ended, why they wait, and their ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dap_mux.cluster.records import DEFAULT_GROUP, RankRecord
from dap_mux.pure.printable import one_line

Json: TypeAlias = dict[str, Any]
ENDED: Final = ("Succeeded", "Failed")  # phases
REPLACEABLE: Final = ("deleted", "failed")  # our own phases: another pod may replace it
MAX_TEXT: Final = 200  # characters of a cluster's message


def name_of(pod: Json) -> str:
    """Return the name of a pod."""
    return str(pod["metadata"]["name"])


def labels_of(pod: Json) -> Json:
    """Return the labels of a pod."""
    return _notes(pod, "labels")


def annotations_of(pod: Json) -> Json:
    """Return the annotations of a pod."""
    return _notes(pod, "annotations")


def has_ended(pod: Json) -> bool:
    """Whether it will not run again."""
    return _status(pod).get("phase") in ENDED


def has_failed(pod: Json) -> bool:
    """Whether it has ended unsuccessfully."""
    return _status(pod).get("phase") == "Failed"


def how_it_failed(pod: Json) -> str:
    """Describe how a failed pod ended: `exit code 1 (Error)`, why it was evicted, or ''."""
    ends = [_exit_of(each.get("state") or {}) for each in _every_container(pod)]
    status = _status(pod)  # evicted, say, before or while its containers ran
    told = ": ".join(str(status[key]) for key in ("reason", "message") if status.get(key))
    return next(filter(None, ends), one_line(told)[:MAX_TEXT])


def exit_code_of(pod: Json) -> int | None:
    """The highest exit code of a pod's containers; None for one that has not ended."""
    ends = [(each.get("state") or {}).get("terminated") for each in _containers(pod)]
    codes = [int(end.get("exitCode", 0)) for end in ends if end]
    return max(codes) if codes and has_ended(pod) else None


def how_it_crashed(pod: Json) -> str:
    """Describe how a container ended that waits to be restarted; '' if none does."""
    waiting = [each for each in _every_container(pod) if "waiting" in (each.get("state") or {})]
    return next(filter(None, (_exit_of(each.get("lastState") or {}) for each in waiting)), "")


def failed_container(pod: Json) -> str:
    """Return the name of the container that failed or crashed; '' if the pod has only one."""
    spec = pod.get("spec") or {}
    if len([*(spec.get("initContainers") or []), *(spec.get("containers") or [])]) < 2:
        return ""
    for each in _every_container(pod):
        if any(_exit_of(each.get(key) or {}) for key in ("state", "lastState")):
            return str(each.get("name", ""))
    return ""


def starts_of(pod: Json) -> int:
    """Return how often its containers have been restarted."""
    return sum(int(each.get("restartCount", 0)) for each in _every_container(pod))


def missed(pod: Json, now: Json | None) -> Json | None:
    """Return a pod that is waited for, if another may replace what it is `now`; otherwise None.

    That is so for a deleted one (None), and for a failed one that a controller, such as a job,
    replaces. It is not for a pod that had ended before.
    """
    if has_ended(pod):
        return None
    if now is None:
        phase = REPLACEABLE[0]
    elif has_failed(now) and _is_controlled(now):
        phase = REPLACEABLE[1]
    else:
        return None
    containers = [{**each, "state": {}} for each in _containers(pod)]
    return {
        **pod,
        "metadata": {**pod["metadata"], "deletionTimestamp": phase},
        "status": {**_status(pod), "phase": phase, "containerStatuses": containers},
    }


def _is_controlled(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") for owner in owners)


def waits_of(pod: Json) -> str:
    """Return why nothing can listen in it yet, '' where something may."""
    name, states = name_of(pod), [each.get("state") or {} for each in _containers(pod)]
    if any("running" in state for state in states):
        return ""
    why = _waiting_for(pod) or _unscheduled(pod)
    if crash := how_it_crashed(pod):
        why += f", after {crash}"
    phase = _status(pod).get("phase", "Unknown")
    if phase == "Running" and states:
        return f"pod {name} does not run now{why or ': its container has ended'}"
    if phase in REPLACEABLE:
        what = "was deleted" if phase == REPLACEABLE[0] else "has failed"
        return f"pod {name} {what}; perhaps another will replace it"
    return "" if phase == "Running" else f"pod {name} is {phase}{why}"


def _waiting_for(pod: Json) -> str:
    """Return `: ImagePullBackOff`, the most specific reason of its containers."""
    states = [each.get("state") or {} for each in _every_container(pod)]
    reasons = [state["waiting"].get("reason") for state in states if state.get("waiting")]
    telling = [reason for reason in reasons if reason and reason != "PodInitializing"]
    return next((f": {reason}" for reason in [*telling, *filter(None, reasons)]), "")


def _exit_of(state: Json) -> str:
    """Describe a container's failure: `exit code 137 (OOMKilled)`; '' without one."""
    end = state.get("terminated") or {}
    if not end.get("exitCode"):
        return ""
    reason = end.get("reason")
    return f"exit code {end['exitCode']}" + (f" ({reason})" if reason else "")


def _unscheduled(pod: Json) -> str:
    """Return why it is not scheduled: `: Unschedulable: 0/3 nodes are available ...`; or ''."""
    for condition in _status(pod).get("conditions") or []:
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
            said = [str(condition[key]) for key in ("reason", "message") if condition.get(key)]
            return one_line(": ".join(["", *said]))[:MAX_TEXT]
    return ""


def is_superseded(pod: Json, *, by: Json) -> bool:
    """Whether the other of two pods in one place counts: it is not being deleted, or is newer."""
    return _age(by) > _age(pod)


def incarnation_of(pod: Json) -> str:
    """Return what differs between two processes of one pod."""
    restarts = sum(int(each.get("restartCount", 0)) for each in _containers(pod))
    return f"{pod['metadata'].get('uid', '')}/{restarts}"


def _age(pod: Json) -> tuple[bool, str]:
    metadata = pod["metadata"]
    return not metadata.get("deletionTimestamp"), str(metadata.get("creationTimestamp", ""))


def _notes(pod: Json, name: str) -> Json:
    notes = pod["metadata"].get(name)
    return notes if isinstance(notes, dict) else {}


def _status(pod: Json) -> Json:
    status = pod.get("status")
    return status if isinstance(status, dict) else {}


def _containers(pod: Json) -> list[Json]:
    return list(_status(pod).get("containerStatuses") or [])


def _every_container(pod: Json) -> list[Json]:
    """Those that run before the others, too."""
    return [*(_status(pod).get("initContainerStatuses") or []), *_containers(pod)]


# The number of each pod, and a record of each of its ranks.

# Labels with a pod's number: of a job, of a StatefulSet.
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEXES: Final = (COMPLETION_INDEX, "apps.kubernetes.io/pod-index")
ORDINAL: Final = re.compile(r"(.*)-([0-9]+)")
NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Where a pod belongs: its group, and its number there; None if nothing tells it."""

    group: str = DEFAULT_GROUP
    number: int | None = None


FindPlace: TypeAlias = Callable[[Json], "Place | None"]
"""Return a pod's place, None for a pod that is no rank."""


def own_place(pod: Json) -> Place:
    """Return the place that a pod's own description says: its RANK, or its index."""
    return Place(number=_number(pod))


def number_in(notes: Json, *keys: str) -> int | None:
    """Return the first of these labels or annotations that is a number."""
    texts = (str(notes.get(key)) for key in keys)
    return next((int(text) for text in texts if NUMBER.fullmatch(text)), None)


def key_of(pod: Json, find_place: FindPlace = own_place) -> str:
    """Return what a pod has in common with the one that replaces it: its place, or its name.

    '' for one that may be replaced by any other of no number.
    """
    place = find_place(pod)
    if place is not None and place.number is not None:
        return f"{place.group}:{place.number}"
    return name_of(pod) if ORDINAL.fullmatch(name_of(pod)) else ""


def ranks_of(
    pods: Iterable[Json], ports: range, *, by_name: bool, find_place: FindPlace = own_place
) -> list[RankRecord]:
    """Return the ranks of these pods, `ports` of each; pods that have ended are left out.

    With `by_name` the number at the end of a name is a pod's number where nothing else tells it.
    With several ports numbers are those of pods, and the ranks in them count on. If some pod of a
    group has no number, the group's ranks are numbered in the order of names.
    """
    groups: dict[str, list[tuple[Json, int | None]]] = {}
    for pod in sorted(pods, key=lambda pod: _natural(name_of(pod))):
        place = None if has_ended(pod) else find_place(pod)
        if place:
            groups.setdefault(place.group, []).append((pod, place.number))
    return [
        record
        for group, members in sorted(groups.items())
        for record in _ranks_of_group(group, members, ports, by_name=by_name)
    ]


def _ranks_of_group(
    group: str, members: Sequence[tuple[Json, int | None]], ports: range, *, by_name: bool
) -> Iterator[RankRecord]:
    pods = [pod for pod, _ in members]
    numbers = [number for _, number in members]
    if None in numbers:
        numbers = _ordinals(pods) if by_name else []
    if not numbers or None in numbers:
        for pod in pods:
            yield from _records(pod, group, ports, None)
        return
    latest: dict[int, Json] = {}
    for number, pod in zip(numbers, pods, strict=True):
        assert number is not None
        other = latest.get(number)
        if other is None or is_superseded(other, by=pod):
            latest[number] = pod
    for number in sorted(latest):
        yield from _records(latest[number], group, ports, number)


def _records(pod: Json, group: str, ports: range, number: int | None) -> Iterator[RankRecord]:
    for place, port in enumerate(ports):
        yield RankRecord(
            host=name_of(pod),
            port=port,
            group=group,
            rank=None if number is None else number * len(ports) + place,
            incarnation=incarnation_of(pod),
            waits=waits_of(pod),
        )


def _number(pod: Json) -> int | None:
    """Return the number in the pod's description: its RANK, or its index."""
    for container in (pod.get("spec") or {}).get("containers") or []:
        for variable in container.get("env") or []:
            if variable.get("name") == "RANK" and NUMBER.fullmatch(str(variable.get("value"))):
                return int(variable["value"])
    return number_in({**labels_of(pod), **annotations_of(pod)}, *INDEXES)


def _ordinals(pods: list[Json]) -> list[int | None]:
    """Return the numbers at the end of their names, if these differ in nothing else."""
    found = [ORDINAL.fullmatch(name_of(pod)) for pod in pods]
    matches = [match for match in found if match]
    if len(matches) < len(pods) or len({match[1] for match in matches}) != 1:
        return []
    return [int(match[2]) for match in matches]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts `trainer-10` after `trainer-9`."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]
