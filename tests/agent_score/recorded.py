"""512 ranks that say what eight real ones have said: `python -m tests.agent_score.recorded FILE N`.

A recorder stands between a session and each real rank, and keeps what that answers to `evaluate`.
Fake ranks answer the same questions with it: as many as the job had by their own numbers, and all
others as one of those that were not at fault.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from dap_mux.pure.protocol.messages import Framer
from tests.bench.fake_ranks import PATCH, FakeRank, serve

HOST: Final = "127.0.0.1"
MEMBERS: Final = re.compile(r"\[0, ?1, ?2, ?3, ?4, ?5, ?6, ?7\]")
"""The ranks of a collective, in evidence."""
WORLD_RANK: Final = re.compile(r'(world_rank\\*": ?)\d+')
Answers = dict[str, Any]
"""The bodies of responses, by expression."""


class Recorder:
    """Passes on what a session and a rank say to each other."""

    def __init__(self, port: int) -> None:
        self.answers: Answers = {}
        self._port = port
        self._asked: dict[int, str] = {}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve until the block is left; yield the port."""
        server = await asyncio.start_server(self._connected, HOST, 0)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        others = await asyncio.open_connection(HOST, self._port)
        await asyncio.gather(self._pass_on(reader, others[1]), self._pass_on(others[0], writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        framer = Framer()
        while data := await reader.read(65536):
            for body in framer.feed(data):
                self._keep(json.loads(body))
            writer.write(data)
        writer.close()

    def _keep(self, message: dict[str, Any]) -> None:
        if message.get("command") != "evaluate":
            return
        if message["type"] == "request":
            self._asked[message["seq"]] = message["arguments"]["expression"]
        elif message["success"]:
            self.answers[self._asked.pop(message["request_seq"], "")] = message["body"]


class Recorded(FakeRank):
    """A rank of many that answers as a real one of few did."""

    told: ClassVar[Mapping[int, Answers]] = {}
    usual = 0
    """Of the real ones, whom ranks beyond them are like."""

    def _told(self, expression: str) -> bytes:
        rank = self.numbers[self._port]
        like = rank if rank in self.told else self.usual
        body = self.told[like].get(expression)
        if body is None or PATCH in expression:  # which process it is would be the same for many
            return super()._told(expression)
        text = MEMBERS.sub(json.dumps([*range(len(self.numbers))]), body["result"])
        return json.dumps({**body, "result": WORLD_RANK.sub(rf"\g<1>{rank}", text)}).encode()


async def main(path: str, count: int) -> None:
    """Serve so many ranks for ever; the file says what they answer, and who is as most are."""
    found = json.loads(await asyncio.to_thread(Path(path).read_text, "utf-8"))
    Recorded.told = {int(rank): answers for rank, answers in found["told"].items()}
    Recorded.usual = found["usual"]
    await serve(count, Recorded)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
