"""Data-parallel training in miniature, and something is wrong with it.

Each rank is a process with a shard of the data. In each step it computes the gradient of its own
batch, the ranks average their gradients (a real all-reduce over TCP), and all take the
same step, so that their weights stay equal. At step 5 the loss explodes.

    dap-mux run -n 4 examples/data_parallel.py

`docs/walkthrough.md` finds out why. The program needs nothing but Python; it reads the variables
that every launcher sets: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. With DELAY_RANK=3
(and DELAY_MAX=2, in seconds) that rank comes late to each all-reduce.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

RENDEZVOUS_SECONDS = 600  # a rank may be held in a debugger before it gets here
SAMPLES = 32
LEARNING_RATE = 0.5

Vector = list[float]


@dataclass
class Batch:
    """Travel times (s) of an echo over distances, as one rank's sensor recorded them."""

    unit: str
    distances: Vector
    times: Vector


@dataclass
class Model:
    """time = slope * distance + offset"""

    slope: float = 0.0
    offset: float = 0.0

    def loss_and_gradient(self, batch: Batch) -> tuple[float, Vector]:
        """Mean squared error over the batch, and its gradient by slope and offset."""
        loss = by_slope = by_offset = 0.0
        for x, y in zip(batch.distances, batch.times, strict=True):
            error = self.slope * x + self.offset - y
            loss += error * error
            by_slope += 2 * error * x
            by_offset += 2 * error
        count = len(batch.times)
        return loss / count, [by_slope / count, by_offset / count]

    def step(self, gradient: Vector) -> None:
        self.slope -= LEARNING_RATE * gradient[0]
        self.offset -= LEARNING_RATE * gradient[1]


def load_batch(rank: int, step: int) -> Batch:
    """The batch of one rank at one step; the same numbers in every run."""
    unit = "mm" if rank == 2 and step >= 5 else "m"  # a sensor was replaced that day
    chance = random.Random(1000 * rank + step)
    metres = [chance.random() for _ in range(SAMPLES)]
    times = [2.0 * x + 0.5 + chance.gauss(0, 0.01) for x in metres]
    return Batch(unit, [x * 1000 if unit == "mm" else x for x in metres], times)


class World:
    """The ranks of this job: rank 0 keeps a connection to each other one."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self._peers: dict[int, TextIO] = {}
        if size > 1:
            self._meet(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

    def all_reduce_mean(self, vector: Vector) -> Vector:
        """The mean of every rank's `vector`; all ranks wait here for the last one."""
        self._come_late()
        if self.rank != 0:
            self._send(0, vector)
            return self._receive(0)
        vectors = [vector] + [self._receive(rank) for rank in range(1, self.size)]
        mean = [sum(column) / self.size for column in zip(*vectors, strict=True)]
        for rank in range(1, self.size):
            self._send(rank, mean)
        return mean

    def _meet(self, host: str, port: int) -> None:
        if self.rank != 0:
            self._peers[0] = _stream(_connect(host, port))
            self._send(0, [self.rank])
            return
        with socket.create_server((host, port)) as server:
            for _ in range(1, self.size):
                stream = _stream(server.accept()[0])
                self._peers[int(json.loads(stream.readline())[0])] = stream

    def _send(self, rank: int, vector: Vector) -> None:
        self._peers[rank].write(json.dumps(vector) + "\n")
        self._peers[rank].flush()

    def _receive(self, rank: int) -> Vector:
        line = self._peers[rank].readline()
        if not line:
            raise ConnectionError(f"rank {rank} has left the job")
        vector: Vector = json.loads(line)
        return vector

    def _come_late(self) -> None:
        if os.environ.get("DELAY_RANK") == str(self.rank):
            time.sleep(random.uniform(0, float(os.environ.get("DELAY_MAX", "2"))))


def _connect(host: str, port: int) -> socket.socket:
    """Connect to rank 0, which may not be there yet."""
    deadline = time.monotonic() + RENDEZVOUS_SECONDS
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            return socket.create_connection((host, port))
        time.sleep(0.05)
    raise TimeoutError(f"rank 0 did not come to {host}:{port}")


def _stream(connection: socket.socket) -> TextIO:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection.makefile("rw", encoding="utf-8")


def train(world: World, steps: int, seconds: float) -> None:
    """`steps` steps of at least `seconds` each; rank 0 reports."""
    model = Model()
    for step in range(steps):
        batch = load_batch(world.rank, step)
        time.sleep(seconds)  # a real forward pass takes a while
        loss, grad = model.loss_and_gradient(batch)
        grad_norm = math.hypot(*grad)
        mean_grad = world.all_reduce_mean(grad)  # a good line for a breakpoint
        model.step(mean_grad)
        if world.rank == 0:
            print(f"step {step:2}  loss {loss:<10.4g} grad_norm {grad_norm:.4g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="data-parallel training in miniature")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.1, help="for each step")
    options = parser.parse_args()
    world = World(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
    train(world, options.steps, options.seconds)
    print(f"rank {world.rank} of {world.size} is done", flush=True)


if __name__ == "__main__":
    main()
