"""Ranks that somebody else has started, wherever that is: one small protocol for every engine.

An engine is one module with one class that fulfils `Source`, made of the `Word` that the user
typed and found by its scheme: `k8s:trainer-0` is read by the class that the entry point `k8s` of
the group `dap_mux.sources` names. Ours are registered the same way (pyproject.toml), so others
can add their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from dap_mux.cluster.records import RankRecord


@dataclass(frozen=True)
class SourceSpec:
    """A word of the command line that names a source: `rest` follows `scheme:`."""

    scheme: str
    rest: str

    def __str__(self) -> str:
        """Return it as typed, without a group."""
        return f"{self.scheme}:{self.rest}"


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Where we connect for a rank: `record` as it is reached from here, its number unchanged.

    `down`: why no connection can succeed now, '' where one may, as far as is known without
    trying (docs/internals/debugpy.md#a-bare-connection-wedges-the-adapter).
    """

    record: RankRecord
    down: str = ""


OnReached: TypeAlias = Callable[[Reached], None]
Notify: TypeAlias = Callable[[str], None]


class Source(Protocol):
    """The ranks that one word of the command line names."""

    @property
    def lingers(self) -> float:
        """How long after its last rank the session waits for ranks that start again (seconds).

        Longer where a rank `waits` by then. It ends where `watch` yields nobody: inf waits for
        that alone, 0 for nothing.
        """

    async def discover(self) -> Sequence[RankRecord]:
        """The ranks that are there now, as their own place names them; none is no error.

        `host` and `port` are the rank's own; a number of None is given by the session. Raises
        `DapMuxError` where there can be none: no such job, not logged in, no such tool.
        """

    def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """All ranks, whenever they are others: later ones, restarted, moved.

        Who is missing has ended for good; who is expected back stays, with `waits` saying why it
        is not there. Raises `DapMuxError` where it cannot see them now: it is asked again.
        """

    def reach(
        self, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> AbstractAsyncContextManager[None]:
        """Make the ranks of one host reachable until the block is left.

        By a tunnel where it takes one. `changed` is called for each rank, at once or as soon as it
        is known, and whenever the way there has changed. `tell` takes what the user should know.
        """


@runtime_checkable
class ReportingSource(Protocol):
    """A `Source` that also knows of ranks that will never come, and how others ended."""

    def notices(self) -> Sequence[str]:
        """What the user has not been told yet; asked after `discover` and whatever `watch` yields.

        Where there is something to tell, `watch` yields, be it the same ranks once more.
        """

    def exit_code(self, record: RankRecord) -> int | None:
        """How a rank ended that `watch` yields no more, where its place says so."""


@asynccontextmanager
async def reach_directly(
    records: Sequence[RankRecord],
    changed: OnReached,
    tell: Notify,  # noqa: ARG001  (the protocol's; there is nothing to say)
) -> AsyncIterator[None]:
    """`Source.reach` for ranks that can be connected to from here as they are."""
    for record in records:
        changed(Reached(record=record))
    yield
