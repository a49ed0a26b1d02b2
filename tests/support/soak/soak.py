"""The soak itself: draws what happens next, and in the end what must hold."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from dap_mux.engine.state.phases import Phase
from tests.support import faults
from tests.support.faults import FaultProxy
from tests.support.processes.commands import User
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import Session
from tests.support.soak.random_life import (
    LASTING,
    LIMIT,
    MAX_CLIENTS,
    Action,
    RandomLife,
    marked_lines,
)
from tests.support.soak.visitors import Visitor

ONCE: Final[tuple[Callable[[Random], faults.Fault], ...]] = (
    lambda chance: faults.Cut(chance.randint(0, 400)),
    lambda chance: faults.Corrupt(chance.randint(0, 400)),
    lambda chance: faults.Inject(b"HTTP/1.1 502 Bad Gateway\r\n\r\n"),
)


@dataclass
class Soak(RandomLife):
    """Everything around one session. `tunnels` lead to the ranks, `line` to the session."""

    running: Session
    ranks: Sequence[Rank]
    tunnels: Sequence[FaultProxy]
    line: FaultProxy
    user: User
    script: str
    kills: bool = False
    killed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lines = marked_lines(self.script)
        self._direct: set[Visitor] = set()  # not over the line that breaks
        self._broken: dict[FaultProxy, asyncio.Task[None]] = {}

    async def run(self, seconds: float, *, stops: float, faults: float) -> None:
        """Let things happen for so long, and until there were more than so many; then all leave.

        A slow machine has `LIMIT` seconds more for them.
        """
        actions = self._actions()

        def goes_on() -> bool:
            enough = self._stops() > stops and self.counts["fault"] > faults
            return self.passed < seconds or (not enough and self.passed < seconds + LIMIT)

        while goes_on():
            await self._draw(actions)()
            self._notice_ends()
            await asyncio.sleep(self._chance.expovariate(20))  # the pace of it: 20 a second
        await self._end()

    def _actions(self) -> list[tuple[Action, int]]:
        """What may happen, and how often."""
        actions: list[tuple[Action, int]] = [
            (self._somebody_acts, 60),
            (self._join, 6),
            (self._leave, 2),
            (self._reload, 2),
            (self._one_shot, 1),
            (self._break_tunnel, 4),
            (self._break_line, 1),
        ]
        return [*actions, (self._kill, int(self.kills))]

    # Clients

    async def _join(self) -> None:
        if len(self._visitors) >= MAX_CLIENTS:
            return
        port = self._chance.choice((self.running.port, self.line.port))
        try:
            visitor = await self._visit(port, self.script, self._lines)
        except OSError as error:
            self._tell("join", f"failed: {error}")
            return
        if port == self.running.port:
            self._direct.add(visitor)

    async def _leave(self) -> None:
        visitor = self._somebody()
        if visitor and not self._is_broken(self.line):
            self._tell("leave", visitor.name)
            self._forget(visitor)
            await visitor.leave()

    async def _reload(self) -> None:
        visitor = self._somebody()
        if visitor:
            self._tell("reload", visitor.name)
            self._forget(visitor)
            await visitor.vanish()
            await self._join()

    async def _one_shot(self) -> None:
        self._tell("one-shot", "list")
        done = await self.user.does("list", f"127.0.0.1:{self.running.port}", "--json")
        assert done.code == 0, done
        assert '"rank": 3' in done.out, done

    def _stops(self) -> int:
        """How many were told, those of who has left included."""
        return self.counts["stop"] + sum(visitor.stops for visitor in self._visitors)

    def _notice_ends(self) -> None:
        """Whose line has broken is no client any more."""
        for visitor in [visitor for visitor in self._visitors if not visitor.here]:
            assert visitor not in self._direct, f"{visitor.name} was hung up on"
            self._forget(visitor)

    def _forget(self, visitor: Visitor) -> None:
        super()._forget(visitor)
        self._direct.discard(visitor)

    # Faults

    async def _break_tunnel(self) -> None:
        """A fault of a rank's link, while that is attached: debugpy forgives none in between."""
        number = self._chance.randrange(len(self.ranks))
        rank = self.running.engine.core.ranks["job", number]
        tunnel = self.tunnels[number]
        if rank.phase is not Phase.LIVE or self._is_broken(tunnel):
            return
        if self._chance.random() < 0.4:
            fault = self._chance.choice(ONCE)(self._chance)
            tunnel.down.switch(fault)
            self._tell("fault", f"{type(fault).__name__} once from rank {number}")
        elif self._chance.random() < 0.2:
            await tunnel.fail(faults.Reset())
            self._tell("fault", f"Reset of rank {number}")
        else:
            fault = self._chance.choice(LASTING)()
            await self._break(tunnel, fault, f"rank {number}")

    async def _break_line(self) -> None:
        if not self._is_broken(self.line):
            fault = self._chance.choice(LASTING)()
            await self._break(self.line, fault, "the clients' line")

    async def _break(self, proxy: FaultProxy, fault: faults.Fault, what: str) -> None:
        seconds = self._chance.uniform(0.1, 3.0)
        self._tell("fault", f"{type(fault).__name__} of {what} for {seconds:.1f} s")
        await proxy.fail(fault)
        self._broken[proxy] = asyncio.create_task(self._heal(proxy, seconds))

    async def _heal(self, proxy: FaultProxy, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await proxy.heal()

    def _is_broken(self, proxy: FaultProxy) -> bool:
        task = self._broken.get(proxy)
        return task is not None and not task.done()

    async def _kill(self) -> None:
        """A rank, or the adapter of one, dies; two ranks live on, and all of them are attached."""
        number = self._chance.randrange(len(self.ranks))
        phase = self.running.engine.core.ranks["job", number].phase
        if len(self.killed) < 2 and phase is Phase.LIVE and number not in self.killed:
            self.killed.add(number)
            self._tell("kill", f"rank {number}")
            os.kill(self.ranks[number].pid, signal.SIGKILL)

    # The end

    async def _end(self) -> None:
        """Everything is healed, and everybody leaves: every rank is let go."""
        for task in self._broken.values():
            await task
        for proxy in (*self.tunnels, self.line):
            await proxy.heal()
        self._notice_ends()
        for visitor in list(self._visitors):
            self._tell("end", f"{visitor.name} leaves")
            self._forget(visitor)
            await visitor.leave()
        core = self.running.engine.core
        await until(lambda: not core.clients, within=LIMIT, what="no client is left")
        await until(lambda: not core.links, within=LIMIT, what="every rank is let go")
        await until(lambda: not core.deadlines, within=LIMIT, what="no deadline is left")

    def story(self) -> str:
        """What a person needs to know when it has failed."""
        core = self.running.engine.core
        ranks = [(rank.number, rank.phase.label, rank.reason) for rank in core.sorted_ranks()]
        lines = [f"seed {self.seed}, {dict(self.counts)}", f"ranks {ranks}", *self.told]
        return "\n".join(lines)


def open_files() -> dict[str, str]:
    """Return this process's open descriptors, and what they are."""
    entries = list(Path("/proc/self/fd").iterdir())  # one of them is this listing's own
    return {entry.name: str(entry.readlink()) for entry in entries if entry.is_symlink()}
