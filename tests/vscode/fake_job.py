"""Many ranks that cost little, in the test's own process: their programs stop when told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from dap_mux.pure.protocol.messages import Framer, encode_frame
from tests.support.fake_rank.rank import FakeRank


class FakeJob:
    """Ranks 0, 1, … of one program, each behind a port."""

    def __init__(self, count: int, program: Path) -> None:
        self.ranks = [FakeRank(number, str(program)) for number in range(count)]
        self.ports: list[int] = []
        self._writers: dict[int, asyncio.StreamWriter] = {}

    def stop(
        self,
        line: int,
        elsewhere: Mapping[int, int] | None = None,
        ranks: Iterable[int] | None = None,
    ) -> None:
        """These ranks, or all, stop at a breakpoint on this line, some on lines of their own."""
        for rank in self.ranks if ranks is None else [self.ranks[number] for number in ranks]:
            rank.hits((elsewhere or {}).get(rank.number, line))
            self._flush(rank)

    async def serve(
        self, rank: FakeRank, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the one client that connects."""
        self._writers[rank.number] = writer
        rank.accepts()
        self._flush(rank)
        framer = Framer()
        over = False
        while not over and (data := await reader.read(65536)):
            for body in framer.feed(data):
                request = json.loads(body)
                rank.receive(request)
                over = request["command"] == "disconnect"
            self._flush(rank)
        rank.hangs_up()
        writer.close()

    def _flush(self, rank: FakeRank) -> None:
        for message in rank.outbox:
            self._writers[rank.number].write(encode_frame(json.dumps(message).encode()))
        rank.outbox = []


@asynccontextmanager
async def fake_job(count: int, program: Path) -> AsyncIterator[FakeJob]:
    """Serve so many ranks until the block is left."""
    job = FakeJob(count, program)
    servers = []
    for rank in job.ranks:

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rank: FakeRank = rank
        ) -> None:
            await job.serve(rank, reader, writer)

        servers.append(await asyncio.start_server(serve, "127.0.0.1", 0))
        job.ports.append(servers[-1].sockets[0].getsockname()[1])
    try:
        yield job
    finally:
        for server in servers:
            server.close()
