"""What a cluster says of its pods, read into ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from dap_mux.cluster.records import RankRecord
from dap_mux.printable import one_line

Json: TypeAlias = dict[str, Any]
# Where a pod's number is written, by whom: a job's own index, a StatefulSet's.
INDEXES: Final = (
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
)
ENDED: Final = ("Succeeded", "Failed")  # phases
REPLACEABLE: Final = ("deleted", "failed")  # phases of ours: another may come in its place
MAX_TEXT: Final = 200  # characters kept of what a cluster says
ORDINAL: Final = re.compile(r"(.*)-([0-9]+)")


def name_of(pod: Json) -> str:
    """Return the name of a pod."""
    return str(pod["metadata"]["name"])


def has_ended(pod: Json) -> bool:
    """Whether it will not run again."""
    return _status(pod).get("phase") in ENDED


def has_failed(pod: Json) -> bool:
    """Whether it has ended, and not well."""
    return _status(pod).get("phase") == "Failed"


def how_it_failed(pod: Json) -> str:
    """Say how a failed pod has ended: `exit code 1 (Error)`, or why it was taken away; or ''."""
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
    """Say how the container ended that waits now to be started again; '' where none does."""
    waiting = [each for each in _every_container(pod) if "waiting" in (each.get("state") or {})]
    return next(filter(None, (_exit_of(each.get("lastState") or {}) for each in waiting)), "")


def failed_container(pod: Json) -> str:
    """The name of the container that failed, or crashed; '' for the only one that there is."""
    spec = pod.get("spec") or {}
    if len([*(spec.get("initContainers") or []), *(spec.get("containers") or [])]) < 2:
        return ""
    for each in _every_container(pod):
        if any(_exit_of(each.get(key) or {}) for key in ("state", "lastState")):
            return str(each.get("name", ""))
    return ""


def starts_of(pod: Json) -> int:
    """How often its containers have been started again."""
    return sum(int(each.get("restartCount", 0)) for each in _every_container(pod))


def missed(pod: Json, now: Json | None) -> Json | None:
    """Return a pod as it is waited for, where another may come in the place of what it is `now`.

    That is so for one that was deleted (None), and where somebody who makes new ones (a job, say)
    has one that failed. None for any other, and for a pod that had ended before.
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


def ranks_of(pods: Iterable[Json], ports: range, *, by_name: bool) -> list[RankRecord]:
    """Return the ranks of these pods, `ports` of each; who has ended is left out.

    A pod's number is its RANK or its index; `by_name`: or the number at the end of its name. With
    several ports it counts pods, and ranks count on. None where not every pod has a number: then
    ranks take their places in the order of names.
    """
    there = [pod for pod in pods if not has_ended(pod)]
    there.sort(key=lambda pod: _natural(name_of(pod)))
    numbers = [_number(pod) for pod in there]
    if None in numbers:
        numbers = _ordinals(there) if by_name else []
    if not numbers or None in numbers:
        return [record for pod in there for record in _records(pod, ports, None)]
    latest: dict[int, Json] = {}
    for number, pod in zip(numbers, there, strict=True):
        assert number is not None
        other = latest.get(number)
        if other is None or _age(pod) > _age(other):
            latest[number] = pod
    return [
        record for number in sorted(latest) for record in _records(latest[number], ports, number)
    ]


def _records(pod: Json, ports: range, number: int | None) -> Iterator[RankRecord]:
    restarts = sum(int(each.get("restartCount", 0)) for each in _containers(pod))
    for place, port in enumerate(ports):
        yield RankRecord(
            host=name_of(pod),
            port=port,
            rank=None if number is None else number * len(ports) + place,
            incarnation=f"{pod['metadata'].get('uid', '')}/{restarts}",
            waits=_waits(pod),
        )


def _waits(pod: Json) -> str:
    """Why nothing can listen in it yet, '' where something may."""
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
        return f"pod {name} {what}; perhaps another is made in its place"
    return "" if phase == "Running" else f"pod {name} is {phase}{why}"


def _waiting_for(pod: Json) -> str:
    """`: ImagePullBackOff`, of the first container that says more than that others come first."""
    states = [each.get("state") or {} for each in _every_container(pod)]
    reasons = [state["waiting"].get("reason") for state in states if state.get("waiting")]
    telling = [reason for reason in reasons if reason and reason != "PodInitializing"]
    return next((f": {reason}" for reason in [*telling, *filter(None, reasons)]), "")


def _exit_of(state: Json) -> str:
    """How a container ended that did not end well: `exit code 137 (OOMKilled)`; '' otherwise."""
    end = state.get("terminated") or {}
    if not end.get("exitCode"):
        return ""
    reason = end.get("reason")
    return f"exit code {end['exitCode']}" + (f" ({reason})" if reason else "")


def _unscheduled(pod: Json) -> str:
    """Why no node takes it: `: Unschedulable: 0/3 nodes are available ...`; '' where one does."""
    for condition in _status(pod).get("conditions") or []:
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
            said = [str(condition[key]) for key in ("reason", "message") if condition.get(key)]
            return one_line(": ".join(["", *said]))[:MAX_TEXT]
    return ""


def _number(pod: Json) -> int | None:
    """What the pod itself says: its RANK, or its index."""
    for container in (pod.get("spec") or {}).get("containers") or []:
        for variable in container.get("env") or []:
            if variable.get("name") == "RANK" and str(variable.get("value")).isdecimal():
                return int(variable["value"])
    metadata = pod["metadata"]
    notes = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return next((int(notes[key]) for key in INDEXES if str(notes.get(key)).isdecimal()), None)


def _ordinals(pods: list[Json]) -> list[int | None]:
    """The numbers at the end of their names, where these differ in nothing else."""
    found = [ORDINAL.fullmatch(name_of(pod)) for pod in pods]
    matches = [match for match in found if match]
    if len(matches) < len(pods) or len({match[1] for match in matches}) != 1:
        return []
    return [int(match[2]) for match in matches]


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts `trainer-10` behind `trainer-9`."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def _age(pod: Json) -> tuple[bool, str]:
    """A key: of two pods with one number the later one counts, or the one that is not going."""
    metadata = pod["metadata"]
    return not metadata.get("deletionTimestamp"), str(metadata.get("creationTimestamp", ""))


def _status(pod: Json) -> Json:
    status = pod.get("status")
    return status if isinstance(status, dict) else {}


def _containers(pod: Json) -> list[Json]:
    return list(_status(pod).get("containerStatuses") or [])


def _every_container(pod: Json) -> list[Json]:
    """Those that run before the others, too."""
    return [*(_status(pod).get("initContainerStatuses") or []), *_containers(pod)]
