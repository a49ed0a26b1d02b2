"""A job's own collectives over plain sockets, and send and receive between neighbours.

A message carries a tag, as MPI's do, so what comes early waits until it is asked for.
"""

from __future__ import annotations

import socket
import struct
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress

HOST = "127.0.0.1"
HEAD = struct.Struct("<16sI")
RETRY_S = 0.05


class World:
    """Ranks 0 to `size` - 1, each of which listens on `port` + its rank."""

    def __init__(self, rank: int, size: int, port: int) -> None:
        self.rank = rank
        self.size = size
        self._port = port
        self._peers: dict[int, socket.socket] = {}
        self._early: dict[int, list[tuple[str, bytes]]] = {}
        self._listener = socket.create_server((HOST, port + rank), backlog=size)

    def connect(self) -> None:
        """Meet all peers; returns once they are there."""
        for peer in sorted(self._needed(self.rank)):
            if peer < self.rank:
                self._call(peer)
        while len(self._peers) < len(self._needed(self.rank)):
            self._accept()

    def all_reduce(self, values: array[float], group: Sequence[int] = ()) -> array[float]:
        """Return the sums over all ranks, or those of a group."""
        members = group or range(self.size)
        tag = f"reduce {members[0]} {len(members)}"
        root = members[0]
        if self.rank != root:
            self.send(root, values.tobytes(), tag)
            return array("d", self.recv(root, tag))
        sums = values
        for peer in members[1:]:
            sums = array("d", map(sum, zip(sums, array("d", self.recv(peer, tag)), strict=True)))
        for peer in members[1:]:
            self.send(peer, sums.tobytes(), tag)
        return sums

    def barrier(self) -> None:
        """Wait until every rank is here."""
        if self.rank != 0:
            self.send(0, b"", "barrier")
            self.recv(0, "barrier")
            return
        for peer in range(1, self.size):
            self.recv(peer, "barrier")
        for peer in range(1, self.size):
            self.send(peer, b"", "barrier")

    def send(self, peer: int, data: bytes, tag: str = "p2p") -> None:
        """Send to a rank; it need not wait for it yet."""
        self._peers[peer].sendall(HEAD.pack(tag.encode(), len(data)) + data)

    def recv(self, peer: int, tag: str = "p2p") -> bytes:
        """Wait for a message from a rank."""
        early = self._early.setdefault(peer, [])
        for place, (found, data) in enumerate(early):
            if found == tag:
                del early[place]
                return data
        while True:
            found, data = self._message(peer)
            if found == tag:
                return data
            early.append((found, data))

    def close(self) -> None:
        """Part in peace: nobody leaves before all are done."""
        for peer in self._peers:
            self.send(peer, b"", "goodbye")
        for peer, connection in self._peers.items():
            self.recv(peer, "goodbye")
            connection.close()
        self._listener.close()

    def _message(self, peer: int) -> tuple[str, bytes]:
        tag, size = HEAD.unpack(self._exactly(peer, HEAD.size))
        return tag.rstrip(b"\0").decode(), self._exactly(peer, size)

    def _exactly(self, peer: int, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                part = self._peers[peer].recv(size - len(data))
            except ConnectionError:
                part = b""
            if not part:  # it may be started again, and calls us then
                self._accept()
            data += part
        return data

    def _call(self, peer: int) -> None:
        while peer not in self._peers:
            with suppress(ConnectionRefusedError):
                self._know(peer, socket.create_connection((HOST, self._port + peer)))
                break
            time.sleep(RETRY_S)
        self._peers[peer].sendall(struct.pack("<I", self.rank))

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        (peer,) = struct.unpack("<I", connection.recv(4, socket.MSG_WAITALL))
        self._know(peer, connection)

    def _know(self, peer: int, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[peer] = connection

    def _needed(self, rank: int) -> set[int]:
        """The root's peers are all; the others' are the roots and their neighbours."""
        near = {0, rank % 2, (rank - 1) % self.size, (rank + 1) % self.size}
        if rank == 0:
            near.update(range(self.size))
        if rank == 1:
            near.update(range(1, self.size, 2))
        return near - {rank}
