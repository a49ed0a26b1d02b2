"""Port forwards to one pod, opened once something listens there."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from dap_mux.cluster.kubernetes.tool import ContainerGone, Tool
from dap_mux.cluster.records import RankRecord
from dap_mux.cluster.source import Notify, OnReached, Reached
from dap_mux.cluster.tunnel import Supervised, pause_after
from dap_mux.pure.endpoint import Backoff
from dap_mux.pure.errors import DapMuxError

LOOPBACK: Final = "127.0.0.1"
FORWARDING: Final = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)")
# `kubectl port-forward` and `oc port-forward` have the same command line; configuration and login
# are their own. The local ports, and that they listen, are read from their output.
PORT_IN_USE: Final = re.compile(r"Unable to listen on port (\d+)", re.IGNORECASE)
CHATTER: Final = re.compile(r"^(Forwarding from|Handling connection for) ")
REFUSED: Final = re.compile(r"failed to connect to localhost:\d+ inside|connection refused")
POLLS: Final = Backoff(first=0.5, longest=5.0)  # between checks of the ports in a pod
LocalPorts = MutableMapping[tuple[str, int], int]


# A connection to a forwarded port on which nothing listens ends the forward of all its ports
# (measured). So one child forwards all ports if we may check inside the pod what listens; otherwise
# each port has a child of its own, so that a refused connection affects no other port.
async def keep_forwarded(
    tool: Tool, records: Sequence[RankRecord], local: LocalPorts, changed: OnReached, tell: Notify
) -> None:
    """Forward the ports of one pod's ranks until cancelled.

    `local` keeps the local port of each pod and port, for the next time.
    """
    way = _Route(tool, records, local, changed, tell)
    if await way.first_look():
        await way.run()
        return
    async with anyio.create_task_group() as tasks:
        for record in records:
            tasks.start_soon(_Route(tool, [record], local, changed, tell).run)


@dataclass(eq=False)
class _Route:
    """Ports of a pod that are forwarded by one child."""

    tool: Tool
    records: Sequence[RankRecord]
    local: LocalPorts
    _changed: OnReached
    _tell: Notify
    _forwarded: set[int] = field(default_factory=set)  # by the present child
    _was_refused: bool = False  # a connection, in the pod, where nothing listened
    _listening: set[int] = field(default_factory=set)
    _looks: bool = False
    _open: bool = False
    _listened: set[int] = field(default_factory=set)  # at any time
    _broken: str = ""  # how it broke, until it is clear that its ranks have not ended
    _was_broken: bool = False
    _refusals: int = 0

    def __post_init__(self) -> None:
        self._pod = self.records[0].host
        self._child = Supervised(self._command, self, chatter=CHATTER)

    async def first_look(self) -> bool:
        """Whether we may check what listens in the pod; waits until that is known."""
        failures = 0
        while not (told := await self._look()):
            await anyio.sleep(pause_after(failures))
            failures += 1
        self._looks = told == "seen"
        return self._looks

    async def run(self) -> None:
        """Keep it open."""
        async with anyio.create_task_group() as tasks:
            if self._looks:
                tasks.start_soon(self._look_for_the_rest)
            await self._keep()

    async def _keep(self) -> None:
        while True:
            try:
                await self._child.run()
            except DapMuxError as error:  # the tool is not there any more
                self.down(str(error))
            await anyio.sleep(POLLS.longest)

    async def _look(self) -> str:
        """Check what listens in the pod: `seen`, `forbidden`, or '' if that is unknown now."""
        try:
            found = await self.tool.listening(self._pod)
        except ContainerGone as error:
            self._broken = ""
            self._say_down(str(error))
            return ""
        except DapMuxError as error:
            self._tell_how_it_broke()
            self._say_down(str(error))
            return ""
        if found is None:
            return "forbidden"
        if found != self._listening:
            self._listening = found
            self._listened |= found
            self._say()
        if not self._anybody_listens():
            self._broken = ""  # the tunnel has ended with its ranks
        return "seen"

    def _anybody_listens(self) -> bool:
        return any(record.port in self._listening for record in self.records)

    def _missing(self) -> bool:
        return any(record.port not in self._listening for record in self.records)

    async def _look_for_the_rest(self) -> None:
        """Poll while some rank does not listen yet."""
        looks = 0
        while True:
            await anyio.sleep(POLLS.delay(looks))
            if self._open and self._missing():
                await self._look()
                looks += 1
            else:
                looks = 0

    def _say(self) -> None:
        """Report for each rank whether it can be connected to."""
        for record in self.records:
            down = ""
            if self._looks and record.port not in self._listening:
                down = self._why_not_listening(record.port)
            elif not self._open:
                down = f"the tunnel to pod {self._pod} is being opened"
            port = self.local.get((self._pod, record.port), record.port)
            here = replace(record, host=LOOPBACK, port=port)
            self._changed(Reached(record=here, down=down))

    def _why_not_listening(self, port: int) -> str:
        where = f"nothing listens on port {port} of pod {self._pod}"
        if port not in self._listened:
            return f"{where} yet"
        return (
            f"{where} any more, but its container runs: debugpy's adapter or the whole rank has "
            "ended there, and the rank cannot be debugged until it is restarted"
        )

    def _tell_how_it_broke(self) -> None:
        """Report a broken tunnel, unless its ranks have ended."""
        if self._broken:
            self._was_broken = True
            self._tell(f"{self._broken}; reopening it")
            self._broken = ""

    def _say_down(self, why: str) -> None:
        for record in self.records:
            self._changed(Reached(record=record, down=why))

    # Called by the child's supervisor

    async def _command(self) -> Sequence[str]:
        await self._until_worth_it()
        self._forwarded.clear()
        self._was_refused = False
        wanted = [record.port for record in self.records]
        ports = [f"{self.local.get((self._pod, port), '')}:{port}" for port in wanted]
        base = [*self.tool.base, "port-forward", "--address", LOOPBACK, f"pod/{self._pod}"]
        return [*base, *ports]

    def said(self, line: str) -> bool:
        """Parse a line of output: a port that it listens on, or one that is in use."""
        taken, forwarding = PORT_IN_USE.search(line), FORWARDING.match(line)
        if taken:
            for place in [each for each, port in self.local.items() if port == int(taken[1])]:
                del self.local[place]
        if REFUSED.search(line):
            self._was_refused = True
        if forwarding is None:
            return False
        self.local[self._pod, int(forwarding[2])] = int(forwarding[1])
        self._forwarded.add(int(forwarding[2]))
        return self._forwarded == {record.port for record in self.records}

    async def _until_worth_it(self) -> None:
        """Wait until something listens; if we may not check, back off after each refusal."""
        failures = 0
        while self._looks and not self._is_worth_it(await self._look()):
            await anyio.sleep(POLLS.delay(failures))
            failures += 1
        if self._looks:
            self._tell_how_it_broke()
        if not self._looks:
            self._refusals = self._refusals + 1 if self._was_refused else 0
            if self._refusals:
                await anyio.sleep(pause_after(self._refusals))

    def _is_worth_it(self, told: str) -> bool:
        return told == "forbidden" or bool(told and self._anybody_listens())

    def up(self) -> None:
        """The ports are open."""
        self._open = True
        self._tell_how_it_broke()
        if self._was_broken:
            self._was_broken = False
            self._tell(f"the tunnel to pod {self._pod} is open again")
        self._say()

    def down(self, why: str) -> None:
        """The ports are closed until `up` is called again."""
        down = f"the tunnel to pod {self._pod} is down ({why})"
        if self._open and not self._was_refused:
            self._broken = down  # as does every tunnel to a pod that has finished
        self._open = False
        self._say_down(f"{down}: reopening it")
