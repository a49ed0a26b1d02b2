"""The protocol of sources: they find, watch and reach ranks that were started elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias, runtime_checkable

from dap_mux.cluster.records import RankRecord


@dataclass(frozen=True)
class SourceSpec:
    """An endpoint that names a source; `rest` follows `scheme:`."""

    scheme: str
    rest: str
    python: Path | None = None  # that of the job, where the user has named one
    options: Mapping[str, object] = field(default_factory=dict)  # that no user has typed

    def __str__(self) -> str:
        """Return it as typed, without a group."""
        return f"{self.scheme}:{self.rest}"


BY_CHOICE: Final = (False, "ssh")


def joined(parts: Mapping[str, str]) -> str:
    """Return the only part of a `cluster` object that is given."""
    return "".join(parts.values())


@dataclass(frozen=True, kw_only=True)
class Description:
    """Describes the endpoints of a source; its class has this as the attribute `description`.

    `help`: an endpoint for `dap-mux attach --help`, such as `slurm:JOBID`. `tunnels`: the values
    that `tunnel` may have beside its `cluster`; a choice of ssh (`BY_CHOICE`) adds `,ssh` to the
    endpoint. `tunnel_to`: what follows `SCHEME:` in a `tunnel` that leads to ports of a host, so
    that `SCHEME:HOST:5678-5681` is an endpoint; '' where there is none.

    A `cluster` object has exactly one of `names` (without names there is no object of this kind),
    and any of `others`. `spell` makes of them what follows `SCHEME:`; a part that is not given is
    ''. It may raise `UsageError`. `count_needs_port`: `+RANKS` only follows a port.
    """

    help: str = ""
    tunnels: tuple[object, ...] = (False,)
    tunnel_to: str = ""
    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    spell: Callable[[Mapping[str, str]], str] = joined
    count_needs_port: bool = True


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The address to connect to for a rank: `record` as seen from here, its number unchanged.

    `down`: why no connection can succeed now, '' where one may. It must be found out without
    connecting: a connection dropped before `attach` wedges the rank's adapter.
    """

    record: RankRecord
    down: str = ""


OnReached: TypeAlias = Callable[[Reached], None]
Notify: TypeAlias = Callable[[str], None]


# A source is one module with one class that implements `Source`. It is constructed with the
# `SourceSpec` that the user typed and chosen by its scheme: `k8s:trainer-0` is read by the class
# that the entry point `k8s` of the group `dap_mux.sources` names. Ours are registered the same way
# (pyproject.toml), so other packages can add their own. What a launch configuration and the help of
# `dap-mux attach` have to know of it is in the class's attribute `description`.
class Source(Protocol):
    """The ranks behind one endpoint."""

    @property
    def lingers(self) -> float:
        """Seconds that the session waits for restarts after the last rank has gone.

        It waits longer while a rank `waits`, and ends when `watch` yields no ranks: inf waits
        for that alone, 0 does not wait.
        """

    async def discover(self) -> Sequence[RankRecord]:
        """Return the present ranks; there may be none.

        `host` and `port` are as the source names them; the session numbers ranks without a number.
        Raises `DapMuxError` if there cannot be any: no such job, not logged in, no such tool.
        """

    def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield all ranks whenever they have changed.

        A missing rank has ended for good; one that is expected back stays, with the reason in
        `waits`. Raises `DapMuxError` for a temporary failure: it is called again.
        """

    def reach(
        self, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> AbstractAsyncContextManager[None]:
        """Keep the ranks of one host reachable until the block is left, by a tunnel if needed.

        `changed` is called for each rank as soon as its address is known, and whenever that has
        changed. `tell` takes messages for the user.
        """


@runtime_checkable
class ReportingSource(Protocol):
    """A `Source` that also reports failures and exit codes."""

    def notices(self) -> Sequence[str]:
        """Return new messages for the user; called after `discover` and each yield of `watch`.

        `watch` yields when there is a message, even if the ranks are the same.
        """

    def exit_code(self, record: RankRecord) -> int | None:
        """Return the exit code of a rank that `watch` no longer yields, if known."""


@runtime_checkable
class PauseAwareSource(Protocol):
    """A `Source` that has to know when ranks are stopped, as a cluster gives up on silent ones."""

    def paused(self, *, stopped: bool) -> None:
        """Any rank is stopped in the debugger from now on, or none is."""


@runtime_checkable
class SwallowingSource(Protocol):
    """A `Source` whose framework catches what user code raises, so that no rank ends of it.

    Known before its first rank: an editor asks for the exceptions to stop at once, and first.
    """

    @property
    def swallows_exceptions(self) -> bool:
        """True if it does."""


@asynccontextmanager
async def reach_directly(
    records: Sequence[RankRecord],
    changed: OnReached,
    tell: Notify,  # noqa: ARG001  (part of the protocol)
) -> AsyncIterator[None]:
    """`Source.reach` for ranks that need no tunnel."""
    for record in records:
        changed(Reached(record=record))
    yield
