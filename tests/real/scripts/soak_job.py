"""A job whose result no debugger may change, and whose length no debugger can.

`soak_job.py GO FOLDER [alone]`: until the file GO exists the ranks go through the same small
computation again and again and compare it with its first result; rank 0 looks for the file and
tells the others in the all-reduce, so that all leave at the same turn. Then they train for a
fixed number of steps, and each writes its model, and how often anything differed, to
FOLDER/RANK.json. `alone`: without the all-reduce, for jobs that lose ranks.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import TextIO

STEPS = 40
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def meet() -> list[TextIO]:
    """Rank 0 has a stream to each other rank, they have one to it."""
    place = ("127.0.0.1", int(os.environ["SOAK_PORT"]))
    if RANK == 0:
        with socket.create_server(place) as server:
            return [server.accept()[0].makefile("rw") for _ in range(1, SIZE)]
    rank_0 = socket.socket()
    while rank_0.connect_ex(place):  # it is not there yet
        time.sleep(0.02)
        rank_0 = socket.socket()
    return [rank_0.makefile("rw")]


def say(stream: TextIO, value: float) -> None:
    stream.write(json.dumps(value) + "\n")
    stream.flush()


def hear(stream: TextIO) -> float:
    line = stream.readline()
    if not line:
        raise ConnectionError("a rank has left the job")
    return float(json.loads(line))


def all_reduce(value: float) -> float:
    """The sum of every rank's value, on every rank."""
    if not peers:
        return value
    if RANK != 0:
        say(peers[0], value)
        return hear(peers[0])
    total = value + sum(sorted(hear(stream) for stream in peers))
    for stream in peers:
        say(stream, total)
    return total


def digest(seed: int) -> str:
    """Some work that gives the same every time."""
    state = str(seed)
    for turn in range(20):
        state = hashlib.sha256(state.encode()).hexdigest()  # work
        if turn == 10:
            state = shuffled(state)
    return state


def shuffled(text: str) -> str:
    half = len(text) // 2  # inner
    return text[half:] + text[:half]


def told(path: str) -> bool:
    """Whether the job shall come to its end; rank 0 decides for all."""
    mine = float(Path(path).exists() and (RANK == 0 or not peers))
    return all_reduce(mine) > 0


def idle(path: str) -> int:
    """Turn until told; return how often a turn gave something else than the first one."""
    first, differed = digest(RANK), 0
    turn = 0
    while not told(path):
        turn += 1  # turn
        differed += digest(RANK) != first
        if turn % 50 == 0:
            print("turn", turn, "of rank", RANK, flush=True)
        time.sleep(0.005)
    return differed


def train() -> list[float]:
    model = [0.0, 0.0]
    for step in range(STEPS):
        noise = int(digest(1000 * RANK + step)[:8], 16) / 2**32
        gradient = all_reduce(noise)  # reduce
        model[0] += gradient / SIZE
        model[1] = (model[1] + model[0] * gradient) % 1.0
    return model


peers = [] if "alone" in sys.argv else meet()
differed = idle(sys.argv[1])
result = {"model": train(), "differed": differed}
Path(sys.argv[2], f"{RANK}.json").write_text(json.dumps(result), "ascii")
print("rank", RANK, "is done")
