"""Reads descriptions of pods: whether they run, how they ended, why they wait."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from dap_mux.printable import one_line

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
