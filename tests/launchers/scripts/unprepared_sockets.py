"""Adds up numbers over sockets, and knows nothing of dap-mux; one rank sleeps from step 3 on.

`python unprepared_sockets.py SLEEPER`; the launcher's variables say the rest.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress

STEPS = 6
SLEEPS_AT = 3
ATTEMPTS = 600


def connect() -> list[socket.socket]:
    """The connections of rank 0 to all others, in no order, or of another to rank 0."""
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if RANK == 0:
        server = socket.create_server(("", place[1]), backlog=SIZE)
        return [server.accept()[0] for _ in range(SIZE - 1)]
    return [reach(place)]


def reach(place: tuple[str, int]) -> socket.socket:
    """Connect as soon as rank 0 listens."""
    for _ in range(ATTEMPTS):
        with suppress(OSError):
            return socket.create_connection(place)
        time.sleep(0.1)
    raise TimeoutError(place)


def all_reduce(number: int) -> int:
    """The sum of all ranks' numbers."""
    if RANK:
        (root,) = LINKS
        root.sendall(number.to_bytes(8, "little"))
        return int.from_bytes(root.recv(8), "little")
    total = number + sum(int.from_bytes(link.recv(8), "little") for link in LINKS)
    for link in LINKS:
        link.sendall(total.to_bytes(8, "little"))
    return total


def load(step: int) -> int:
    """Bring the number of a step."""
    if RANK == SLEEPER and step == SLEEPS_AT:
        shard = f"shard-{RANK}"
        print(f"{shard} sleeps", flush=True)
        time.sleep(1e6)
    return step + RANK


RANK = int(os.environ.get("RANK") or os.environ["SLURM_PROCID"])
SIZE = int(os.environ.get("WORLD_SIZE") or os.environ["SLURM_NTASKS"])
SLEEPER = int(sys.argv[1])
LINKS = connect()
for each in range(STEPS):
    all_reduce(load(each))
