"""Ranks on the loopback of a host that ssh reaches: `ssh:[USER@]HOST[:PORT][-LAST|+RANKS]`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Final

import anyio

from dap_mux.cluster.records import RankRecord, ports_of
from dap_mux.cluster.source import Description, Notify, OnReached, Reached, SourceSpec
from dap_mux.errors import DapMuxError, UsageError
from dap_mux.tunnel.ssh import LOOPBACK, SshTunnel

_NAME: Final = re.compile(
    r"(?P<target>(?!-)(?:[\w.\\%+-]+@)?(?:[\w.%-]+|\[[\w.:%-]+\]))"
    r"(?::(?P<first>\d+))?(?:(?<=\d)-(?P<last>\d+)|\+(?P<count>[1-9]\d*))?",
    re.ASCII,
)


def _spell(parts: Mapping[str, str]) -> str:
    return (f"{parts['user']}@" if parts["user"] else "") + parts["host"]


class Ssh:
    """A `Source`: ranks on a host's loopback, reached by ssh."""

    description = Description(
        help="ssh:HOST",
        tunnels=("ssh",),
        tunnel_to="HOST",
        names=("host",),
        others=("user",),
        spell=_spell,
    )
    lingers = 0.0

    def __init__(self, word: SourceSpec) -> None:
        found = _NAME.fullmatch(word.rest)
        if found is None:
            raise UsageError(
                f"{word}: not a host for ssh; one looks like ssh:node1, ssh:me@node1:5678, "
                "ssh:node1:5678-5681 or ssh:node1:5678+4 (4 ranks)"
            )
        self.target = found["target"].replace("[", "").replace("]", "")
        host = self.target.rpartition("@")[2]
        self._records = [RankRecord(host=host, port=port) for port in ports_of(found, word)]

    async def discover(self) -> Sequence[RankRecord]:
        """Return the ranks that the endpoint names; whether they listen shows on connecting."""
        return self._records

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Never yield: the endpoint names all ranks."""
        await anyio.sleep_forever()
        yield self._records

    def reach(
        self, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> AbstractAsyncContextManager[None]:
        """Reach them by one ssh, which forwards a port for each."""
        return reach_by_ssh(self.target, records, changed, tell)


@asynccontextmanager
async def reach_by_ssh(
    target: str, records: Sequence[RankRecord], changed: OnReached, tell: Notify
) -> AsyncIterator[None]:
    """`Source.reach` for ranks on the loopback of `target`, a host as ssh knows it."""
    way = _Route(target, records, changed, tell)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(way.run)
        yield
        tasks.cancel_scope.cancel()


class _Route:
    """Reports the address of each rank, and tells the user when the tunnel changes."""

    def __init__(
        self, target: str, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> None:
        self._target = target
        self._records = records
        self._changed = changed
        self._tell = tell
        self._trouble = ""

    async def run(self) -> None:
        ports = [record.port for record in self._records]
        try:
            await SshTunnel(self._target, ports, self._up, self._down).run()
        except DapMuxError as error:
            self._down(str(error))

    def _up(self, local: Mapping[int, int]) -> None:
        if self._trouble:
            self._tell(f"the tunnel to {self._target} is back")
            self._trouble = ""
        for record in self._records:
            here = replace(record, host=LOOPBACK, port=local[record.port])
            self._changed(Reached(record=here))

    def _down(self, why: str) -> None:
        why = f"the tunnel to {self._target} is down: {why}"
        if why != self._trouble:  # once, however often it is retried
            self._tell(f"{why}; retrying")
            self._trouble = why
        for record in self._records:
            self._changed(Reached(record=record, down=why))
