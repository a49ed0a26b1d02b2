"""Pods that are gone, and that are waited for because others may be made in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dap_mux.cluster.kubernetes.pod_ranks import FindPlace, key_of, own_place
from dap_mux.cluster.kubernetes.pods import Json, has_ended, missed, name_of

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
