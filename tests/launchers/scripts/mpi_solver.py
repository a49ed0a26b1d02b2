"""Jacobi's method on a rod, by mpi4py: neighbours exchange their ends, all ranks the residual.

`--coarse`: from iteration 3 on, rank 1 rounds; `--nan`: in iteration 2, rank 1 divides by zero.
"""

from __future__ import annotations

import sys
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size, cells = world.rank, world.size, 6
rod = array("d", [1 / (1 + cells * rank + at) for at in range(cells + 2)])


def relaxed(iteration: int) -> array[float]:
    """Each cell becomes the mean of its neighbours."""
    inside = [(rod[at - 1] + rod[at + 1]) / 2 for at in range(1, cells + 1)]
    if rank == 1 and iteration >= 3 and "--coarse" in sys.argv:
        inside = [round(each, 3) for each in inside]
    if rank == 1 and iteration == 2 and "--nan" in sys.argv:
        inside[-1] *= float("nan")
    return array("d", [rod[0], *inside, rod[-1]])


for iteration in range(6):
    left, right = (rank - 1) % size, (rank + 1) % size
    end = array("d", [0.0])
    world.Sendrecv(rod[cells : cells + 1], right, recvbuf=end, source=left)
    if rank > 0:
        rod[0] = end[0]
    new = relaxed(iteration)
    change = array("d", [max(abs(a - b) for a, b in zip(new, rod, strict=True))])
    rod = new
    largest = array("d", [0.0])
    world.Allreduce(change, largest, op=MPI.MAX)
    total = world.allreduce(sum(rod))
    if rank == 0:
        print(f"largest change {largest[0]:.4f}, sum {total:.4f}")
