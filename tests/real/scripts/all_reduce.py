"""Ranks that add up numbers together, over sockets, like an all-reduce: nobody is back early.

Each step takes STEP seconds. The last rank comes late: by up to MOST_LATE seconds each time, mostly
by little; with ALL_LATE each rank does, by itself. Arguments: how many times.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from contextlib import suppress

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PORT = int(os.environ["MASTER_PORT"])
MOST_LATE = float(os.environ.get("MOST_LATE", "2"))
ALL_LATE = "ALL_LATE" in os.environ
STEP = float(os.environ.get("STEP", "0"))  # seconds of work in each step
chance = random.Random(6 + SIZE - RANK)


def meet() -> list[socket.socket]:
    """Rank 0 gets a connection to each other rank, in order; the others one to rank 0."""
    if RANK == 0:
        with socket.create_server(("127.0.0.1", PORT)) as server:
            arrived = [server.accept()[0] for _ in range(1, SIZE)]
            return [peer for _, peer in sorted((receive(peer), peer) for peer in arrived)]
    while True:
        with suppress(ConnectionRefusedError):
            peer = socket.create_connection(("127.0.0.1", PORT))
            send(peer, RANK)
            return [peer]
        time.sleep(0.02)


def send(peer: socket.socket, number: int) -> None:
    peer.sendall(number.to_bytes(8, "big"))


def receive(peer: socket.socket) -> int:
    return int.from_bytes(peer.recv(8, socket.MSG_WAITALL), "big")


def all_reduce(number: int) -> int:
    """The sum of every rank's number; all ranks wait here for the last one."""
    if RANK != 0:
        send(peers[0], number)
        return receive(peers[0])
    total = number + sum(receive(peer) for peer in peers)
    for peer in peers:
        send(peer, total)
    return total


def come_late() -> None:
    time.sleep(STEP)
    if ALL_LATE or RANK == SIZE - 1:
        time.sleep(MOST_LATE * chance.random() ** 4)  # sleep


peers = meet()
done = 0
total = 0
while done < int(sys.argv[1]):
    come_late()  # late
    total = all_reduce(RANK + done)  # reduce
    done += 1  # count
print("total", total)
