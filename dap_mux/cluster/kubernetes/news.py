"""What the user should hear of pods that will never be ranks: which have failed, and how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dap_mux.cluster.kubernetes.pods import Json, has_failed, how_it_failed, name_of
from dap_mux.cluster.kubernetes.tool import Tool

MAX_NAMED: Final = 8  # pods named at once; a job of a thousand fails in one way


class News:
    """Sentences that have not been told yet."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._known: set[str] = set()
        self._failed: list[str] = []
        self._others: list[str] = []

    def see(self, pods: Iterable[Json]) -> None:
        """These are the pods now: each one that has failed is told once."""
        for pod in filter(has_failed, pods):
            uid = str(pod["metadata"].get("uid", name_of(pod)))
            if uid not in self._known:
                self._known.add(uid)
                self._failed.append(self._failure(pod))

    def add(self, text: str) -> None:
        """Tell this, too; '' is nothing."""
        self._others += filter(None, [text])

    def __bool__(self) -> bool:
        return bool(self._failed or self._others)

    def take(self) -> list[str]:
        """All that has not been told; it has been from now on."""
        named, more = self._failed[:MAX_NAMED], len(self._failed) - MAX_NAMED
        told = [*named, *([f"{more} more pods have failed"] if more > 0 else []), *self._others]
        self._failed, self._others = [], []
        return told

    def _failure(self, pod: Json) -> str:
        name, how = name_of(pod), how_it_failed(pod)
        logs = self._tool.command("logs", name)
        return f"pod {name} has failed{f': {how}' if how else ''}; see `{logs}`"
