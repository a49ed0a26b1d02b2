"""Trains on several ranks with mpi4py."""

from __future__ import annotations

from array import array
from typing import Any

from mpi4py import MPI

from tests.why_score.jobs.faults import RANK, Shares, wait_for_config


def exchange(comm: Any, shares: Shares, values: array[float], step: int) -> array[float]:
    """Give the edge to the right neighbour, and take that of the left one."""
    left, right = (shares.rank - 1) % shares.size, (shares.rank + 1) % shares.size
    edge = array("d", values)
    if shares.all_have("recv-before-send", step):
        comm.Recv([edge, MPI.DOUBLE], source=left)
    if shares.has("recv-pair", step, beside=1):
        comm.Recv([edge, MPI.DOUBLE], source=right if shares.rank == RANK else left)
    if not shares.has("send-left-out", step):
        comm.Send([values, MPI.DOUBLE], dest=right)
    comm.Recv([edge, MPI.DOUBLE], source=left)
    return edge


def all_reduce(comm: Any, values: array[float]) -> array[float]:
    """Return the sums."""
    sums = array("d", values)
    comm.Allreduce([values, MPI.DOUBLE], [sums, MPI.DOUBLE])
    return sums


def reduce(comm: Any, group: Any, shares: Shares, values: array[float], step: int) -> None:
    """Sum up the gradient, first in the group and then over all."""
    if shares.has("sub-group", step):
        all_reduce(comm, values)
    values = all_reduce(group, values)
    if shares.has("skipped", step):
        return
    if shares.has("swapped", step):
        comm.Barrier()
    if shares.has("other-kind", step):
        comm.allgather(1)
    if shares.has("extra", step):
        all_reduce(comm, values)
    all_reduce(comm, values)


def train(comm: Any, group: Any, shares: Shares) -> None:
    """Take one step after the other."""
    batches = shares.loaded()
    for step in range(shares.steps()):
        shares.progress(step)
        values = batches.get()
        shares.at("compute", step)
        values = exchange(comm, shares, values, step)
        reduce(comm, group, shares, values, step)
        shares.at("checkpoint", step)
        comm.Barrier()
    shares.at("end", shares.steps())


def main() -> None:
    """Train, and part; mpi4py itself meets the others, and takes leave of them at the exit."""
    comm = MPI.COMM_WORLD
    shares = Shares(comm.rank, comm.size)
    wait_for_config()
    group = comm.Split(comm.rank % 2, comm.rank)
    try:
        train(comm, group, shares)
    except Exception as error:
        shares.tell(error)
        comm.Barrier()  # all write what they have before the job ends
        raise


if __name__ == "__main__":
    main()
