"""Messages about pods that have failed or crashed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dap_mux.cluster.kubernetes.pods import (
    Json,
    failed_container,
    has_failed,
    how_it_crashed,
    how_it_failed,
    name_of,
    starts_of,
)
from dap_mux.cluster.kubernetes.tool import Tool

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
