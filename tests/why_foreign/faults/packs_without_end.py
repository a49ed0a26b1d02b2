"""A rank looks for places for particles, of which there are too many.

https://github.com/mphowardlab/relentless/issues/221: simulations get stuck in generating the first
configuration, because the volume fraction is too high; only one rank does it, the others wait.
"""

from __future__ import annotations

import random

import torch
import torch.distributed as dist


def pack(particles: int, distance: float) -> list[float]:
    placed: list[float] = []
    while len(placed) < particles:
        place = random.random()
        if all(abs(place - other) > distance for other in placed):  # culprit: tries
            placed.append(place)  # culprit
    return placed


def main() -> None:
    dist.init_process_group("gloo")
    places = torch.zeros(20)
    if dist.get_rank() == 2:
        places = torch.tensor(pack(20, 0.1))  # culprit: call
    dist.broadcast(places, src=2)
    dist.barrier()


main()
