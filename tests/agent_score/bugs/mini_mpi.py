"""What these programs need of mpi4py, over sockets: messages by tag, and collectives made of them.

A send returns once the operating system has taken the message; a large one waits for its receiver.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from contextlib import suppress
from typing import Any, Final

BUFFER: Final = 32 * 1024  # bytes that a message may have for its sender not to wait


class Comm:
    """The ranks of this job; each has a connection to each other one."""

    def __init__(self) -> None:
        self.rank = int(os.environ["RANK"])
        self.size = int(os.environ["WORLD_SIZE"])
        self._peers: dict[int, socket.socket] = {}
        self._early: dict[tuple[int, str], list[Any]] = {}
        self._meet(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

    def send(self, value: Any, dest: int, tag: str = "") -> None:
        frame = json.dumps([tag, value]).encode()
        self._peers[dest].sendall(struct.pack("!I", len(frame)) + frame)

    def recv(self, source: int, tag: str = "") -> Any:
        early = self._early.setdefault((source, tag), [])
        while not early:
            self._take(source)
        return early.pop(0)

    def recv_any(self, tag: str = "") -> tuple[int, Any]:
        """The next message with this tag and its sender, whoever that is."""
        while True:
            for (source, its_tag), early in self._early.items():
                if its_tag == tag and early:
                    return source, early.pop(0)
            ready = select.select(self._peers.values(), [], [])[0]
            self._take(next(rank for rank, peer in self._peers.items() if peer in ready))

    def gather(self, value: Any, root: int = 0, tag: str = "gather") -> list[Any] | None:
        if self.rank != root:
            self.send(value, root, tag)
            return None
        return [value if rank == root else self.recv(rank, tag) for rank in range(self.size)]

    def bcast(self, value: Any = None, root: int = 0, tag: str = "bcast") -> Any:
        if self.rank != root:
            return self.recv(root, tag)
        for rank in range(self.size):
            if rank != root:
                self.send(value, rank, tag)
        return value

    def allgather(self, value: Any, tag: str = "allgather") -> list[Any]:
        result: list[Any] = self.bcast(self.gather(value, 0, tag), 0, tag)
        return result

    def allreduce(self, vector: list[float]) -> list[float]:
        """The sum of every rank's vector."""
        everyone = self.allgather(vector, "allreduce")
        return [sum(column) for column in zip(*everyone, strict=True)]

    def barrier(self) -> None:
        self.allgather(None, "barrier")

    def _take(self, source: int) -> None:
        length = struct.unpack("!I", self._read(source, 4))[0]
        tag, value = json.loads(self._read(source, length))
        self._early.setdefault((source, tag), []).append(value)

    def _read(self, source: int, length: int) -> bytes:
        data = self._peers[source].recv(length, socket.MSG_WAITALL)
        if len(data) < length:
            raise ConnectionError(f"rank {source} has left the job")
        return data

    def _meet(self, host: str, port: int) -> None:
        """Rank 0 collects the addresses; each rank connects to those below it."""
        at = (host, port if self.rank == 0 else 0)
        with socket.create_server(at, backlog=self.size) as server:
            if self.rank:
                self._join(0, _connect(host, port))
                self.send(server.getsockname()[1], 0)
                addresses = self.recv(0)
            else:
                self._accept(server, self.size - 1)
                addresses = [0] + [self.recv(rank) for rank in range(1, self.size)]
                for rank in range(1, self.size):
                    self.send(addresses, rank)
            for rank in range(1, self.rank):
                self._join(rank, _connect(host, addresses[rank]))
            if self.rank:
                self._accept(server, self.size - 1 - self.rank)

    def _accept(self, server: socket.socket, count: int) -> None:
        for _ in range(count):
            peer = server.accept()[0]
            self._keep(struct.unpack("!I", peer.recv(4, socket.MSG_WAITALL))[0], peer)

    def _join(self, rank: int, peer: socket.socket) -> None:
        peer.sendall(struct.pack("!I", self.rank))
        self._keep(rank, peer)

    def _keep(self, rank: int, peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self._peers[rank] = peer


def _connect(host: str, port: int) -> socket.socket:
    """Connect to a rank that may not listen yet."""
    while True:
        with suppress(ConnectionRefusedError):
            return socket.create_connection((host, port))
        time.sleep(0.05)
