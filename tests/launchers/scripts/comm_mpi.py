"""Four ranks of MPI: each kind of call, in each mode; prints as JSON what a watch has seen.

With the argument `early` the watch begins before mpi4py is imported, else in a job that runs.
"""

from __future__ import annotations

import sys
from array import array
from typing import Any

from comm_watch import comm, tell

IS_EARLY = "early" in sys.argv
if IS_EARLY:
    comm.begin("hash", print)

from mpi4py import MPI  # noqa: E402

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
METHODS = {name: getattr(MPI.Intracomm, name) for name in dir(MPI.Intracomm)}


def buffers() -> list[Any]:
    """Calls with buffers; what they have received."""
    mine, total, all_of = array("d", [rank, 0.5]), array("d", [0, 0]), array("d", 2 * size * [0])
    world.Allreduce(mine, total)
    world.Allgather([mine, MPI.DOUBLE], [all_of, MPI.DOUBLE])
    world.Allreduce(MPI.IN_PLACE, mine)
    world.Bcast(array("d", [rank]) if rank == 1 else total[:1], root=1)
    part = array("d", [0, 0])
    world.Scatter(all_of if rank == 0 else None, part, root=0)
    world.Reduce(part, total if rank == 2 else None, op=MPI.MAX, root=2)
    got = array("d", [0, 0])
    requests = [
        world.Isend(part, dest=(rank + 1) % size),
        world.Irecv(got, source=(rank - 1) % size),
    ]
    MPI.Request.Waitall(requests)
    world.Barrier()
    return [list(each) for each in (mine, total, all_of, part, got)]


def objects() -> list[Any]:
    """Calls with objects; what they have received."""
    found = [world.allreduce(rank), world.bcast({"from": rank}, root=3), world.allgather([rank])]
    found.append(world.scatter([*range(size)] if rank == 0 else None))
    request = world.isend({"to": rank}, (rank + 1) % size)
    found.append(world.recv(source=(rank - 1) % size))
    request.wait()
    return found


def groups() -> list[Any]:
    """Calls in communicators made from COMM_WORLD."""
    half = world.Split(rank % 2, rank)
    found = [half.allreduce(1), half.Dup().allgather(rank)]
    half.Free()
    made = world.Create(world.Get_group().Incl([0, 3]))
    if made != MPI.COMM_NULL:
        found.append(made.allreduce(rank))
    return found


def play(mode: str) -> None:
    """Make all calls in a mode, and tell what was seen."""
    if not IS_EARLY or comm.mode() != mode:
        comm.begin(mode, print)
    watch = comm.mpi()
    seen = len(watch.record.last) if watch is not None else 0
    values = [buffers(), objects(), groups()]
    calls = [*watch.record.last][seen:] if watch is not None else []
    fields = [
        [one.kind, one.group, one.number, one.peer, one.inputs, one.outputs, one.is_open]
        for one in calls
    ]
    places = sorted({one.place.rpartition(" ")[2] for one in calls})
    told = {"mode": mode, "rank": rank, "values": values, "calls": fields, "places": places}
    tell("scene", told)


for each in ("hash", "time", "finite", "off") if IS_EARLY else ("off", "time", "hash", "finite"):
    play(each)
comm.begin("finite", print)
world.allgather(float("nan") if rank == 2 else 1.0)
world.Allreduce(MPI.IN_PLACE, array("d", [1.0, float("inf")]))
tell("finite", [rank, [one.finite for one in [*comm.mpi().record.last][-2:]]])
comm.begin("off", print)
finders = sum(type(one).__module__ == comm.__name__ for one in sys.meta_path)
now = {name: getattr(MPI.Intracomm, name) for name in METHODS}
is_clean = now == METHODS or (IS_EARLY and "MpiWatch" not in repr(now))
tell("clean", is_clean and not finders and comm.mpi() is None)
