"""Rank 2 has no cells of the mesh and returns: it ends well, the others lose it.

Smooths values on a graph whose parts belong to ranks.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict

from mini_mpi import Comm

NODES = 160
EDGES = 500


def part_of(node: int, size: int) -> int:
    """Which rank has a node: a partitioner has said so, by weight."""
    weights = [3, 2, 0, 4, 2, 2, 3, 4]
    place = node * sum(weights) // NODES
    for rank, weight in enumerate(weights[:size]):
        if place < weight:
            return rank
        place -= weight
    return size - 1


def graph() -> dict[int, list[int]]:
    chance = random.Random(4)
    edges: defaultdict[int, list[int]] = defaultdict(list)
    for _ in range(EDGES):
        a, b = chance.randrange(NODES), chance.randrange(NODES)
        edges[a].append(b)
        edges[b].append(a)
    return edges


def smoothed(values: list[float], mine: list[int], edges: dict[int, list[int]]) -> list[float]:
    """The new values of a rank's nodes, in a vector of all."""
    result = [0.0] * NODES
    for node in mine:
        around = edges[node]
        mean = sum(values[other] for other in around) / len(around) if around else values[node]
        result[node] = 0.5 * values[node] + 0.5 * mean
    return result


def smooth(comm: Comm, steps: int) -> None:
    edges = graph()
    mine = [node for node in range(NODES) if part_of(node, comm.size) == comm.rank]
    counts = comm.allgather(len(mine))
    if comm.rank == 0:
        print(f"nodes by rank: {counts}", flush=True)
    if not mine:
        return  # BUG
    values = [float(node % 10) for node in range(NODES)]
    for step in range(steps):
        values = comm.allreduce(smoothed(values, mine, edges))
        spread = max(values) - min(values)
        if comm.rank == 0:
            print(f"step {step}: spread {spread:.5f}", flush=True)
        time.sleep(0.1)


def main() -> None:
    smooth(Comm(), 10_000)


if __name__ == "__main__":
    main()
