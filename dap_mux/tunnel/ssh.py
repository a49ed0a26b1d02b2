"""`ssh -L` to one host, for ranks that listen on its loopback.

ssh says itself when the way is open: LocalCommand runs once it is logged in and listens here. The
user's own configuration counts, with three exceptions: it never asks for a password, a dead
network is noticed within 15 s, and it takes a connection of its own (a shared one would keep the
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
OPEN_MARK: Final = "dap-mux: the way is open"
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
    ("Permission denied", "dap-mux cannot type a password: load a key (ssh-add), or set one up"),
    ("Host key verification failed", "connect once by hand (ssh {target}) and accept its key"),
)


class SshTunnel:
    """The one ssh to a host, with a port of this machine for each of `ports` on its loopback.

    `up` is told the local port of each; `down` why there is none, with what helps.
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
        """The process of the ssh that runs now."""
        return self._supervised.pid

    async def run(self) -> None:
        """Keep it open until cancelled. Raises `UsageError` where ssh cannot be started."""
        await self._supervised.run()

    async def command(self) -> Sequence[str]:
        """The words of the next start, with ports that are free now."""
        self._local = free_ports(len(self._remote))
        return ssh_command(self._target, self._remote, self._local)

    def said(self, line: str) -> bool:
        """Whether the way is open from now on."""
        return line == OPEN_MARK

    def up(self) -> None:
        """Say where the ports are."""
        self._up(dict(zip(self._remote, self._local, strict=True)))

    def down(self, why: str) -> None:
        """Say why, and what helps where that is known."""
        helps = [text.format(target=self._target) for words, text in _HINTS if words in why]
        self._down("; ".join([why, *helps]))


def ssh_command(target: str, remote: Sequence[int], local: Sequence[int]) -> list[str]:
    """The command line; `DAP_MUX_SSH` names another ssh, or gives it options."""
    options = [word for option in OPTIONS for word in ("-o", option)]
    forwards = [
        word
        for here, there in zip(local, remote, strict=True)
        for word in ("-L", f"{LOOPBACK}:{here}:{LOOPBACK}:{there}")
    ]
    ssh = shlex.split(os.environ.get(COMMAND, "")) or ["ssh"]
    return [*ssh, "-N", "-T", *options, *forwards, "--", target]


def free_ports(count: int) -> list[int]:
    """Ports that are free now; where another program is faster, ssh ends and is started anew."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
