"""Ranks that somebody else has started, wherever that is: one small protocol for every engine.

An engine is one module with one class that fulfils `Source`, found by its scheme: `k8s:trainer-0`
is read by the class that the entry point `k8s` of the group `dap_mux.sources` names. Ours are
registered the same way (pyproject.toml), so others can add their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from dap_mux.cluster.records import RankRecord

Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Where we connect for a rank: `record` as it is reached from here.

    `up`: whether connecting now can succeed, as far as is known without trying (K2 of the
    measured facts: a connection that is not kept wedges the rank's adapter).
    """

    record: RankRecord
    up: bool = True


class Source(Protocol):
    """The ranks that one word of the command line names."""

    async def discover(self) -> Sequence[RankRecord]:
        """The ranks that are there now, as their own place names them; none is no error.

        Raises `DapMuxError` where there can be none: no such job, not logged in, no such tool.
        """

    def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """All ranks, again whenever they are others: later ones, restarted, moved, gone."""

    def reach(
        self, record: RankRecord, changed: Callable[[Reached], None], tell: Tell
    ) -> AbstractAsyncContextManager[None]:
        """Make a rank reachable until the block is left, by a tunnel where it takes one.

        `changed` is called at once or as soon as it is known, and whenever the way there has
        changed. `tell` takes what the user should know (tunnel down, back again).
        """
