"""Many ranks in one process: fakes that keep debugpy's contract, and that are cut and killed.

`python -m tests.support.soak.simulated_ranks PORT COUNT` takes the commands of `SimulatedRanks` on
its standard input. They listen on PORT and those behind it, each on its own over all its processes.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

import anyio

from tests.support.fake_rank.rank import FakeRank
from tests.support.fake_rank.server import converse, entered, say
from tests.support.soak.commanded import obey

HOST: Final = "127.0.0.1"


class SimulatedRank:
    """One rank: a process after the other."""

    def __init__(self, number: int, port: int) -> None:
        self.number = number
        self.port = port
        self.rank = FakeRank(number)
        self.wedged_by: list[str] = []
        self._server: asyncio.Server | None = None
        self._writers: dict[asyncio.StreamWriter, FakeRank] = {}

    async def listen(self) -> None:
        """Accept debuggers."""
        self._server = await asyncio.start_server(self._serve, HOST, self.port)

    def cut(self) -> None:
        """Reset its connection; it runs on."""
        for writer in list(self._writers):
            writer.transport.abort()

    def kill(self) -> None:
        """End its process."""
        if self._server:
            self._server.close()
            self._server = None
        self.cut()

    async def revive(self) -> None:
        """Start another process."""
        if self._server is None:
            self.rank = FakeRank(self.number)
            await self.listen()

    def prints(self, lines: int) -> None:
        """Write so many lines at once, where a debugger is attached."""
        for writer, rank in self._writers.items():
            if rank is self.rank and rank.configured:
                for line in range(lines):
                    rank.prints(f"line {line} of rank {self.number}\n")
                say(rank, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def hear(rank: FakeRank, request: dict[str, Any]) -> None:
            self._writers[writer] = rank
            alive = not rank.dead
            rank.receive(request)
            if alive and rank.dead:
                self.wedged_by.append(request["command"])

        self._writers[writer] = rank = entered(self.rank)
        try:
            await converse(rank, reader, writer, hear)
        except OSError:
            pass
        finally:
            left = self._writers.pop(writer)
            if left not in self._writers.values():
                left.hangs_up()
            writer.close()


class SimulatedRanks:
    """The commands; a rank goes by its number among these."""

    def __init__(self, ranks: list[SimulatedRank]) -> None:
        self._ranks = ranks

    async def cut(self, rank: int) -> None:
        """Reset its connection."""
        self._ranks[rank].cut()

    async def kill(self, rank: int) -> None:
        """End its process."""
        self._ranks[rank].kill()

    async def revive(self, rank: int) -> None:
        """Start another process in its place, unless there is one."""
        await self._ranks[rank].revive()

    async def prints(self, ranks: list[int], lines: int) -> None:
        """These write so many lines at once."""
        for rank in ranks:
            self._ranks[rank].prints(lines)

    async def wedged(self) -> list[tuple[int, list[str]]]:
        """Return those that were asked what debugpy never answers, and the requests."""
        return [(each.number, each.wedged_by) for each in self._ranks if each.wedged_by]


async def main() -> None:
    first, count = map(int, sys.argv[1:])
    ranks = [SimulatedRank(number, first + number) for number in range(count)]
    for rank in ranks:
        await rank.listen()
    all_of_them = SimulatedRanks(ranks)
    names = ("cut", "kill", "revive", "prints", "wedged")
    await obey({name: getattr(all_of_them, name) for name in names})


if __name__ == "__main__":
    anyio.run(main)
