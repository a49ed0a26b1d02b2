"""`kubectl port-forward` and `oc port-forward`: forwards ports of one pod to this machine.

The two have the same command line; configuration and login are their own. The local ports, and that
they listen, are read from their output.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from typing import Final, Protocol

from dap_mux.tunnel.supervised import Supervised

FORWARDING: Final = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)")
PORT_IN_USE: Final = re.compile(r"Unable to listen on port (\d+)", re.IGNORECASE)
CHATTER: Final = re.compile(r"^(Forwarding from|Handling connection for) ")
REFUSED: Final = re.compile(r"failed to connect to localhost:\d+ inside|connection refused")


class PortForwardOwner(Protocol):
    """The user of the ports."""

    async def worth_starting(self) -> None:
        """Wait until something may listen in the pod."""

    def forwarded(self) -> None:
        """Every port is forwarded, to `PortForward.local`."""

    def broken(self, why: str) -> None:
        """No port is forwarded until `forwarded` is called again."""


class PortForward:
    """Ports of a pod, forwarded by one child process; `run` keeps it running until cancelled.

    `base`: the tool and its options. `local` keeps the local port of each pod and port, so that
    restarts reuse it.
    """

    def __init__(
        self,
        base: Sequence[str],
        pod: str,
        ports: Sequence[int],
        local: MutableMapping[tuple[str, int], int],
        owner: PortForwardOwner,
    ) -> None:
        self._base = base
        self._pod = pod
        self._ports = ports
        self._owner = owner
        self._listening: set[int] = set()
        self.local = local
        self.was_refused = False
        """Whether a connection was refused in the pod, where nothing listened."""
        self._child = Supervised(self._command, self, chatter=CHATTER)

    async def run(self) -> None:
        """Keep the ports forwarded. Raises `UsageError` where the tool cannot be started."""
        await self._child.run()

    async def _command(self) -> Sequence[str]:
        await self._owner.worth_starting()
        self._listening.clear()
        self.was_refused = False
        ports = [f"{self.local.get((self._pod, port), '')}:{port}" for port in self._ports]
        return [*self._base, "port-forward", "--address", "127.0.0.1", f"pod/{self._pod}", *ports]

    def said(self, line: str) -> bool:
        """Parse a line of output: a port that it listens on, or one that is in use."""
        taken, forwarding = PORT_IN_USE.search(line), FORWARDING.match(line)
        if taken:
            for place in [each for each, port in self.local.items() if port == int(taken[1])]:
                del self.local[place]
        if REFUSED.search(line):
            self.was_refused = True
        if forwarding is None:
            return False
        self.local[self._pod, int(forwarding[2])] = int(forwarding[1])
        self._listening.add(int(forwarding[2]))
        return self._listening == set(self._ports)

    def up(self) -> None:
        """It listens on every port."""
        self._owner.forwarded()

    def down(self, why: str) -> None:
        """It has ended."""
        self._owner.broken(why)
