"""512 ranks that say what eight real ones have said: `python -m tests.agent_score.recorded FILE N`.

A recorder stands between a session and each real rank, and keeps what that answers to `evaluate`.
Fake ranks answer the same questions with it: as many as the job had by their own numbers, and all
others as one of those that were not at fault. Each has a process, which sleeps, and in it the
connections that its answers name: only by these does a session see which rank waits for which.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from dap_mux.pure.protocol.messages import Framer
from dap_mux.shell.local_machine import read_processes
from dap_mux.system import procfs
from tests.bench.fake_ranks import NOTHING, PATCH, FakeRank, serve

HOST: Final = "127.0.0.1"
MEMBERS: Final = re.compile(r"\[0, ?1, ?2, ?3, ?4, ?5, ?6, ?7\]")
"""The ranks of a collective, in evidence."""
WORLD_RANK: Final = re.compile(r'(world_rank\\*": ?)\d+')
SOCKET: Final = re.compile(r"socket:\[\d+\]")
LOOKS: Final = 3
"""Linux leaves connections out of a look while others come and go."""
Answers = dict[str, Any]
"""The bodies of responses, by expression."""
Peers = dict[int, dict[str, int]]
"""The rank at the other end of a rank's connection, by that connection's name."""


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


def peers_of(told: Mapping[int, Answers]) -> Peers:
    """Look at the processes of real ranks, which have said who they are."""
    identities = {
        rank: body["result"].split(" ", 2)[2]
        for rank, answers in told.items()
        for expression, body in answers.items()
        if PATCH in expression
    }
    ends: dict[int, dict[str, tuple[str, str]]] = {rank: {} for rank in identities}
    for _ in range(LOOKS):
        found = read_processes(identities.values())
        for rank, identity in identities.items():
            ends[rank].update(found[identity].connections)
    ranks = {local: rank for rank, own in ends.items() for local, _ in own.values()}
    return {
        rank: {name: ranks[remote] for name, (_, remote) in own.items() if remote in ranks}
        for rank, own in ends.items()
    }


class Job:
    """Ranks of many, each with its process and connections."""

    def __init__(self, path: Path, count: int) -> None:
        found = json.loads(path.read_text("utf-8"))
        self._told: dict[str, Answers] = found["told"]
        self._peers: dict[str, dict[str, int]] = {
            rank: {
                name: peer for name, peer in peers.items() if name in json.dumps(self._told[rank])
            }
            for rank, peers in found["peers"].items()
        }
        self._usual = str(found["usual"])
        self._sockets: defaultdict[int, dict[int, socket.socket]] = defaultdict(dict)
        for rank in range(count):
            for peer in {*self._named(rank).values()} - self._sockets[rank].keys():
                with socket.create_server((HOST, 0)) as server:  # whose end is that rank's alone
                    self._sockets[rank][peer] = socket.create_connection(server.getsockname())
                    self._sockets[peer][rank] = server.accept()[0]
        self._names = [self._renamed(rank) for rank in range(count)]
        ends, _ = os.pipe()  # at whose end the processes end, with this one
        self.processes = [self._process(rank, ends) for rank in range(count)]

    def answers(self, rank: int) -> Answers:
        """Return those of the real rank that this one is like."""
        return self._told.get(str(rank), self._told[self._usual])

    def with_own_connections(self, rank: int, text: str) -> str:
        """Name a rank's connections in what a real one has said."""
        return SOCKET.sub(lambda name: self._names[rank].get(name[0], name[0]), text)

    def _named(self, rank: int) -> dict[str, int]:
        """Return the peers of the connections that a rank's answers name."""
        return self._peers.get(str(rank), self._peers[self._usual])

    def _renamed(self, rank: int) -> dict[str, str]:
        """Return the names of a rank's connections by those of the real one's."""
        inodes = {p: os.fstat(own.fileno()).st_ino for p, own in self._sockets[rank].items()}
        return {name: f"socket:[{inodes[p]}]" for name, p in self._named(rank).items()}

    def _process(self, rank: int, ends: int) -> str:
        """Start a rank's process, which inherits its connections; return what it is known by."""
        own = self._sockets[rank].values()
        process = subprocess.Popen(
            ["cat"], stdin=ends, stdout=subprocess.DEVNULL, pass_fds=[one.fileno() for one in own]
        )
        stat = procfs.stat(process.pid)
        assert stat is not None
        return f"{procfs.boot_id()} {procfs.namespace('pid')} {process.pid} {stat.started}"


class Recorded(FakeRank):
    """A rank of many that answers as a real one of few did."""

    job: ClassVar[Job]

    def _told(self, expression: str) -> bytes:
        rank = self.numbers[self._port]
        body = self.job.answers(rank).get(expression)
        if body is None:
            return NOTHING
        text = MEMBERS.sub(json.dumps([*range(len(self.numbers))]), body["result"])
        text = self.job.with_own_connections(rank, WORLD_RANK.sub(rf"\g<1>{rank}", text))
        if PATCH in expression:
            text = " ".join([*text.split(" ", 2)[:2], self.job.processes[rank]])
        return json.dumps({**body, "result": text}).encode()


def main(path: str, count: int) -> None:
    """Serve so many ranks for ever; the file says what they answer, and who is as most are."""
    Recorded.job = Job(Path(path), count)
    asyncio.run(serve(count, Recorded))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
