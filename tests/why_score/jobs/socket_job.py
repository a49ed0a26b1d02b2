"""Trains on several ranks with collectives of its own; nothing but the standard library."""

from __future__ import annotations

import os
from array import array

from tests.why_score.jobs.collectives import World
from tests.why_score.jobs.faults import RANK, Shares, wait_for_config


def exchange(world: World, shares: Shares, values: array[float], step: int) -> array[float]:
    """Give the edge to the right neighbour, and take that of the left one."""
    left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
    if shares.all_have("recv-before-send", step):
        return array("d", world.recv(left))
    if shares.has("recv-pair", step, beside=1):
        return array("d", world.recv(right if world.rank == RANK else left))
    if not shares.has("send-left-out", step):
        world.send(right, values.tobytes())
    return array("d", world.recv(left))


def reduce(world: World, shares: Shares, values: array[float], step: int) -> array[float]:
    """Sum up the gradient, first among neighbours and then over all."""
    group = range(world.rank % 2, world.size, 2)
    if shares.has("sub-group", step):
        return world.all_reduce(world.all_reduce(values), group)
    values = world.all_reduce(values, group)
    if shares.has("skipped", step):
        return values
    if shares.has("swapped", step):
        world.barrier()
    if shares.has("extra", step):
        world.all_reduce(values)
    return world.all_reduce(values)


def train(world: World, shares: Shares) -> None:
    """Take one step after the other."""
    batches = shares.loaded()
    for step in range(shares.steps()):
        shares.progress(step)
        values = batches.get()
        shares.at("compute", step)
        values = exchange(world, shares, values, step)
        values = reduce(world, shares, values, step)
        shares.at("checkpoint", step)
        world.barrier()
    shares.at("end", shares.steps())


def main() -> None:
    """Meet the others, train, and part."""
    wait_for_config()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    world = World(rank, size, int(os.environ["MASTER_PORT"]))
    world.connect()
    shares = Shares(rank, size)
    try:
        train(world, shares)
    except Exception as error:
        shares.tell(error)
        world.barrier()  # all write what they have before the job ends
        raise
    world.close()


if __name__ == "__main__":
    main()
