"""Numbers the pods of a selection, and makes a record of each of their ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from dap_mux.cluster.kubernetes.pods import (
    Json,
    annotations_of,
    has_ended,
    incarnation_of,
    is_superseded,
    labels_of,
    name_of,
    waits_of,
)
from dap_mux.cluster.records import DEFAULT_GROUP, RankRecord

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
