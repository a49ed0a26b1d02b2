"""The scene `mixed`: simulated and real ranks in one session, three clients, faults at random.

Lives of different lengths follow each other. At the end of each everything is mended and everybody
leaves, and the session has to hold as little as at the end of the first one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support import faults
from tests.support.faults import FaultProxy
from tests.support.soak.bad_requests import ask_badly, babble
from tests.support.soak.commanded import Commanded
from tests.support.soak.gauges import (
    AT_REST,
    BASELINE,
    BASELINE_BOUNDS,
    MEANWHILE,
    Sample,
    grown,
    not_back,
    table,
)
from tests.support.soak.random_life import (
    LASTING,
    LIMIT,
    MAX_CLIENTS,
    Action,
    RandomLife,
    marked_lines,
)
from tests.support.soak.restarted_ranks import RestartedRanks
from tests.support.soak.visitors import OWN, QUESTIONS, ConsoleVisitor, Visitor

PACE: Final = 10.0  # actions a second
SAMPLE_EVERY_S: Final = 1.0
SHORTEST_LIFE_S: Final = 6.0
LONGEST_LIFE: Final = 1 / 10  # of the whole
AWAY_S: Final = (0.0, 3.0)  # that a rank is dead, or a line broken
SHOWN: Final = 12  # types of objects
SIMULATED: Final = ("/job/train.py", (6, 7, 12))  # the fakes' program, and some of its lines
CASTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("cast", {"ranks": "all", "command": "p 6 * 7"}),
    ("cast", {"ranks": "stopped", "command": "w"}),
    ("cast", {"ranks": "0-9", "command": "n"}),
    ("cast", {"ranks": "stopped", "command": "c"}),
    ("compare", {"ranks": "0-15", "expression": "step"}),
    ("evaluate", {"expression": "ranks(0-70:5) 1 + 1", "context": "repl"}),
)


class MixedConsole(ConsoleVisitor):
    """A console that casts and compares, too."""

    questions = (*QUESTIONS, *OWN, *CASTS, *CASTS)


@dataclass
class MixedLife(RandomLife):
    """The session, its ranks and who is there.

    The `count` simulated ranks come first, and listen on ports that follow each other.
    """

    session: Commanded
    simulated: Commanded
    count: int
    first_port: int
    real: RestartedRanks
    tunnels: Sequence[FaultProxy]
    script: str
    port: int = 0
    at_rest: list[Sample] = field(default_factory=list)
    meanwhile: list[Sample] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._places = [SIMULATED, (self.script, marked_lines(self.script))]
        self._repairs: set[asyncio.Task[None]] = set()
        self._away: set[int] = set()  # ranks that are dead or behind a broken line

    async def run(self, seconds: float) -> None:
        """Live for so long, and leave."""
        self.port = await self.session.ask("port")
        before = await self.session.ask("rest")
        self._baseline = {name: before[name] for name in BASELINE}
        first: dict[str, int] = {}
        kinds: dict[str, int] = {}
        sampling = asyncio.create_task(self._sample())
        try:
            await self._live(SHORTEST_LIFE_S)  # what is made once for all is made in it
            while self.passed < seconds:
                longest = max(2 * SHORTEST_LIFE_S, seconds * LONGEST_LIFE)
                await self._live(self._chance.uniform(SHORTEST_LIFE_S, longest))
                self.at_rest.append(await self.session.ask("rest"))
                kinds = await self.session.ask("kinds")
                first = first or kinds
        finally:
            sampling.cancel()
        self.more = Counter(kinds)
        self.more.subtract(first)

    def complaints(self) -> list[str]:
        """Return what the session has kept."""
        return [
            *(f"at rest, {each}" for each in grown(self.at_rest, AT_REST)),
            *(f"meanwhile, {each}" for each in grown(self.meanwhile, MEANWHILE)),
            *(
                f"after rest {number}, {each}"
                for number, sample in enumerate(self.at_rest)
                for each in not_back(self._baseline, sample, BASELINE_BOUNDS)
            ),
        ]

    def report(self) -> str:
        """The seed, how much has happened, and what the session held after each life."""
        head = f"seed {self.seed}, {self.passed:.0f} s, {dict(self.counts)}"
        more = ", ".join(f"{kind} {count:+}" for kind, count in self.more.most_common(SHOWN))
        return f"{head}\n{table(self.at_rest)}\nobjects since the first rest: {more}"

    def story(self) -> str:
        """What happened last, and what the session has said."""
        return "\n".join([*self.told, self.session.said])

    async def _sample(self) -> None:
        """While clients are there: how long a session takes to rest depends on the machine."""
        while True:
            sample = await self.session.ask("measure")
            if sample["clients"]:
                self.meanwhile.append(sample)
            await asyncio.sleep(SAMPLE_EVERY_S)

    # One life

    async def _live(self, seconds: float) -> None:
        actions = self._actions()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await self._draw(actions)()
            for visitor in self._visitors:
                assert visitor.here, f"{visitor.name} was hung up on"
            self._check_repairs()
            await asyncio.sleep(self._chance.expovariate(PACE))
        await self._come_to_rest()

    def _actions(self) -> list[tuple[Action, int]]:
        """What may happen, and how often."""
        return [
            (self._somebody_acts, 60),
            (self._join, 8),
            (self._leave, 2),
            (self._vanish, 2),
            (self._cut, 6),
            (self._break_line, 3),
            (self._kill_simulated, 2),
            (self._kill_real, 1),
            (self._print_a_lot, 3),
            (self._ask_badly, 3),
        ]

    async def _come_to_rest(self) -> None:
        """Every rank is there, every line is whole, and everybody leaves."""
        while self._repairs:
            await asyncio.wait(self._repairs, timeout=LIMIT)
            self._check_repairs()
        for visitor in self._visitors:
            self._tell("end", f"{visitor.name} leaves")
            await visitor.leave()
        self._visitors.clear()
        deadline = time.monotonic() + LIMIT
        while any((held := await self._held()).values()):
            if time.monotonic() > deadline:
                files = "\n".join(await self.session.ask("described_files"))
                raise AssertionError(f"it does not come to rest: {held}; it has open:\n{files}")
            await asyncio.sleep(0.05)

    async def _held(self) -> Sample:
        """Return what the session still has more of than before its first client.

        A thread may be reading a file for a client that has left.
        """
        sample = await self.session.ask("measure")
        transient = [name for name in BASELINE if name != "errors"]
        return {name: max(0, sample[name] - self._baseline[name]) for name in transient}

    # Clients

    async def _join(self) -> None:
        if len(self._visitors) < MAX_CLIENTS:
            path, lines = self._chance.choice(self._places)
            await self._visit(self.port, path, lines, MixedConsole)

    async def _leave(self) -> None:
        if visitor := self._goes("leave"):
            await visitor.leave()

    async def _vanish(self) -> None:
        if visitor := self._goes("vanish"):
            await visitor.vanish()

    def _goes(self, how: str) -> Visitor | None:
        visitor = self._somebody()
        if visitor:
            self._tell(how, visitor.name)
            self._forget(visitor)
        return visitor

    async def _ask_badly(self) -> None:
        if self._chance.random() < 0.3:
            self._tell("bad", "bytes that are not DAP")
            await babble(self.port, self._chance)
        else:
            asked = await ask_badly(self.port, self._chance)
            self._tell("bad", f"{asked} requests")

    # Ranks

    async def _print_a_lot(self) -> None:
        ranks = self._chance.sample(range(self.count), self._chance.randint(1, self.count))
        lines = self._chance.choice((1, 100, 1000)) // len(ranks) + 1
        self._tell("print", f"{lines} lines of each of {len(ranks)} ranks")
        await self.simulated.ask("prints", ranks, lines)

    async def _cut(self) -> None:
        number = self._chance.randrange(self.count)
        self._tell("cut", f"rank {number}")
        await self.simulated.ask("cut", number)

    async def _kill_simulated(self) -> None:
        number = self._chance.randrange(self.count)
        if number not in self._away:
            self._later(self._dead_for_a_while(number, self._drawn()), number)

    async def _dead_for_a_while(self, number: int, seconds: float) -> None:
        seen = self._chance.random() < 0.5  # by a launcher
        self._tell("kill", f"rank {number} for {seconds:.1f} s{', seen' if seen else ''}")
        await self.simulated.ask("kill", number)
        if seen:
            await self.session.ask("ended", number)
        await asyncio.sleep(seconds)
        await self.simulated.ask("revive", number)
        await self.session.ask("known", number, self.first_port + number)

    async def _kill_real(self) -> None:
        place = self._chance.randrange(len(self.tunnels))
        if not self._away & set(range(self.count, self.count + len(self.tunnels))):
            self._later(self._restart(place), self.count + place)

    async def _restart(self, place: int) -> None:
        """Nothing leads to the rank before it has started again, as where its pod does."""
        number, tunnel = self.count + place, self.tunnels[place]
        self._tell("kill", f"rank {number}")
        tunnel.stop_listening()
        await self.real.kill(place)
        tunnel.reset()
        await self.session.ask("ended", number)
        tunnel.target = await self.real.start(place)
        await tunnel.listen()
        await self.session.ask("known", number, tunnel.port)

    async def _break_line(self) -> None:
        place = self._chance.randrange(len(self.tunnels))
        if self.count + place not in self._away:
            fault = self._chance.choice((*LASTING, faults.Reset))()
            self._later(self._broken(place, fault, self._drawn()), self.count + place)

    async def _broken(self, place: int, fault: faults.Fault, seconds: float) -> None:
        self._tell("fault", f"{type(fault).__name__} of {self.count + place} for {seconds:.1f} s")
        await self.tunnels[place].fail(fault)
        await asyncio.sleep(seconds)
        await self.tunnels[place].heal()

    def _drawn(self) -> float:
        return self._chance.uniform(*AWAY_S)

    def _later(self, repair: Any, number: int) -> None:
        """Break and mend something beside all that happens meanwhile."""
        self._away.add(number)
        task = asyncio.create_task(repair)
        self._repairs.add(task)
        task.add_done_callback(lambda _: self._away.discard(number))

    def _check_repairs(self) -> None:
        for task in [task for task in self._repairs if task.done()]:
            self._repairs.discard(task)
            task.result()
