"""Ranks on the loopback of a host that ssh reaches: `ssh:[USER@]HOST[:PORT][-LAST|+RANKS]`."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

import anyio

from dap_mux.cluster.machines import Machine
from dap_mux.cluster.records import RankRecord, ports_of
from dap_mux.cluster.source import Description, Notify, OnReached, Reached, SourceSpec
from dap_mux.cluster.tunnel import Supervised
from dap_mux.pure.errors import DapMuxError, UsageError

LOOPBACK: Final = "127.0.0.1"
COMMAND: Final = "DAP_MUX_SSH"
OPEN_MARK: Final = "dap-mux: tunnel open"
OPTIONS: Final = (
    "BatchMode=yes",
    "ExitOnForwardFailure=yes",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ControlMaster=no",
    "ControlPath=none",
    "PermitLocalCommand=yes",
    f"LocalCommand=echo '{OPEN_MARK}'",
)
# One that others share would outlive it, and keep its streams.
ALONE: Final = ("BatchMode=yes", "ControlMaster=no")
RIGHT_ON_A_HOST: Final = "root may, and the user where kernel.yama.ptrace_scope is 0"
_HINTS: Final = (
    ("Permission denied", "dap-mux cannot enter a password: load a key (ssh-add), or set one up"),
    ("Host key verification failed", "connect once by hand (ssh {target}) and accept its key"),
)
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
        self.names_ports = bool(found["first"] or found["count"])

    async def discover(self) -> Sequence[RankRecord]:
        """Return the ranks that the endpoint names; whether they listen shows on connecting."""
        return self._records

    async def machines(self) -> Sequence[Machine]:
        """Return the host."""
        return [machine_by_ssh(self.target)]

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
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_Tunnel(target, records, changed, tell).run)
        yield
        tasks.cancel_scope.cancel()


# ssh reports that the tunnel is open through LocalCommand, which runs once it has logged in and
# listens. The user's ssh configuration applies, with three exceptions: ssh never asks for a
# password, a dead network is noticed within 15 s, and the connection is not shared (a shared one
# would keep the forwarded ports open after us).
@dataclass(eq=False)
class _Tunnel:
    """One ssh to a host that forwards a local port to each rank on its loopback."""

    target: str
    records: Sequence[RankRecord]
    _changed: OnReached
    _tell: Notify
    _trouble: str = ""
    _local: Sequence[int] = ()

    async def run(self) -> None:
        """Keep the tunnel open until cancelled, or until ssh cannot be started."""
        try:
            await Supervised(self._command, self).run()
        except DapMuxError as error:
            self._report(str(error))

    async def _command(self) -> Sequence[str]:
        """Return the next command line, with ports that are free now."""
        self._local = _free_ports(len(self.records))
        return _ssh_command(self.target, [one.port for one in self.records], self._local)

    def said(self, line: str) -> bool:
        """Whether the tunnel is open from now on."""
        return line == OPEN_MARK

    def up(self) -> None:
        """It is open."""
        if self._trouble:
            self._tell(f"the tunnel to {self.target} is back")
            self._trouble = ""
        for record, port in zip(self.records, self._local, strict=True):
            self._changed(Reached(record=replace(record, host=LOOPBACK, port=port)))

    def down(self, why: str) -> None:
        """It is closed: report the reason, with advice where there is some."""
        helps = [text.format(target=self.target) for words, text in _HINTS if words in why]
        self._report("; ".join([why, *helps]))

    def _report(self, why: str) -> None:
        why = f"the tunnel to {self.target} is down: {why}"
        if why != self._trouble:  # once, however often it is retried
            self._tell(f"{why}; retrying")
            self._trouble = why
        for record in self.records:
            self._changed(Reached(record=record, down=why))


def _ssh_command(target: str, remote: Sequence[int], local: Sequence[int]) -> list[str]:
    """Return the command line; `DAP_MUX_SSH` names another ssh, or adds options."""
    forwards = [
        word
        for here, there in zip(local, remote, strict=True)
        for word in ("-L", f"{LOOPBACK}:{here}:{LOOPBACK}:{there}")
    ]
    return [*_ssh(*OPTIONS), "-N", "-T", *forwards, "--", target]


def _ssh(*options: str) -> list[str]:
    ssh = shlex.split(os.environ.get(COMMAND, "")) or ["ssh"]
    return [*ssh, *(word for option in options for word in ("-o", option))]


def machine_by_ssh(target: str, only: Mapping[str, str] | None = None) -> Machine:
    """Return a host as ssh knows it; `only` as in `Machine`."""

    def reach(script: str) -> list[str]:
        # The user's shell there may be any.
        return [*_ssh(*ALONE), "-T", "--", target, f"exec sh -c {shlex.quote(script)}"]

    return Machine(name=target, reach=reach, only=only or {}, right=RIGHT_ON_A_HOST)


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now; if another program takes one, ssh ends and is restarted."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
