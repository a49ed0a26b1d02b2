"""`ssh -L` to one host, for ranks that listen on its loopback.

ssh reports that the tunnel is open through LocalCommand, which runs once it has logged in and
listens. The user's ssh configuration applies, with three exceptions: ssh never asks for a password,
a dead network is noticed within 15 s, and the connection is not shared (a shared one would keep the
forwarded ports open after us).
"""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from dap_mux.tunnel.supervised import Supervised

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
_HINTS: Final = (
    ("Permission denied", "dap-mux cannot enter a password: load a key (ssh-add), or set one up"),
    ("Host key verification failed", "connect once by hand (ssh {target}) and accept its key"),
)


class SshTunnel:
    """One ssh to a host that forwards a local port to each of `ports` on its loopback.

    `up` receives the local port of each; `down` the reason why there is none, with advice.
    """

    def __init__(
        self,
        target: str,
        ports: Sequence[int],
        up: Callable[[Mapping[int, int]], None],
        down: Callable[[str], None],
    ) -> None:
        self._target = target
        self._remote = ports
        self._local: list[int] = []
        self._up = up
        self._down = down
        self._supervised = Supervised(self.command, self)

    @property
    def pid(self) -> int | None:
        """The pid of the current ssh."""
        return self._supervised.pid

    async def run(self) -> None:
        """Keep the tunnel open until cancelled. Raises `UsageError` if ssh cannot be started."""
        await self._supervised.run()

    async def command(self) -> Sequence[str]:
        """Return the next command line, with ports that are free now."""
        self._local = free_ports(len(self._remote))
        return ssh_command(self._target, self._remote, self._local)

    def said(self, line: str) -> bool:
        """Whether the tunnel is open from now on."""
        return line == OPEN_MARK

    def up(self) -> None:
        """Report the local ports."""
        self._up(dict(zip(self._remote, self._local, strict=True)))

    def down(self, why: str) -> None:
        """Report the reason, with advice where there is some."""
        helps = [text.format(target=self._target) for words, text in _HINTS if words in why]
        self._down("; ".join([why, *helps]))


def ssh_command(target: str, remote: Sequence[int], local: Sequence[int]) -> list[str]:
    """Return the command line; `DAP_MUX_SSH` names another ssh, or adds options."""
    options = [word for option in OPTIONS for word in ("-o", option)]
    forwards = [
        word
        for here, there in zip(local, remote, strict=True)
        for word in ("-L", f"{LOOPBACK}:{here}:{LOOPBACK}:{there}")
    ]
    ssh = shlex.split(os.environ.get(COMMAND, "")) or ["ssh"]
    return [*ssh, "-N", "-T", *options, *forwards, "--", target]


def free_ports(count: int) -> list[int]:
    """Return ports that are free now; if another program takes one, ssh ends and is restarted."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
