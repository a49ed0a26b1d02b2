"""Fit y = 3x on several MPI ranks: each has one sample, and all take the mean of the gradients.

mpirun -n 4 python train.py [STEPS]
"""

import sys

from mpi4py import MPI


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    weight = 0.0
    for step in range(steps):
        x = rank + 1.0
        gradient = 2 * x * (weight * x - 3 * x)
        mean = comm.allreduce(gradient) / size  # every rank waits here for the gradients of all
        weight -= 0.01 * mean
        if rank == 0:
            print(f"step {step} weight {weight:.4f}", flush=True)


if __name__ == "__main__":
    main()
