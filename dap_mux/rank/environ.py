"""Which rank am I: read from the variables that launchers set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

MONARCH = MONARCH_RANK, MONARCH_SIZE = ("MONARCH_RANK_", "MONARCH_SIZE_")
"""What `monarch exec` puts in front of the names of dimensions."""
_VARIABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Place:
    """Where this process stands in its job; every number is None where nobody said it."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    launcher: str | None = None
    # Only where the launcher is a program that lays ranks out itself:
    group: str | None = None
    coords: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Launcher:
    """The names of one launcher's variables; "" where it has none."""

    name: str
    rank: str
    world_size: str = ""
    local_rank: str = ""
    local_world_size: str = ""


# The order decides where two apply: a torchrun inside an srun, an mpirun inside an sbatch, any of
# them in a pod. The inner launcher knows better, and SLURM sets its variables in every job step.
# PMIx is what Open MPI and `srun --mpi=pmix` speak below their own names. `{...}` stands for the
# value of another variable.
LAUNCHERS = (
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    Launcher(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    Launcher("PMIx", "PMIX_RANK"),
    Launcher("SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    Launcher(
        "OpenPAI",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
        "PAI_TASK_ROLE_TASK_COUNT_{PAI_CURRENT_TASK_ROLE_NAME}",
    ),
    Launcher("Kubernetes", "JOB_COMPLETION_INDEX"),
)


def place_of(environ: Mapping[str, str]) -> Place:
    """The place that the first launcher with a sensible rank gives, else an empty one.

    What it does not say is taken from the next one that gives the same rank.
    """
    places = [place for each in LAUNCHERS if (place := _read(each, environ)) is not None]
    places += [place for place in [_of_monarch(environ)] if place is not None]
    if not places:
        return Place()
    first, *others = places
    for other in others:
        if other.rank == first.rank:
            first = _filled(first, other)
    return first


def _filled(place: Place, other: Place) -> Place:
    """`place`, its gaps filled by `other`."""
    gaps = {
        name: getattr(other, name)
        for name in ("world_size", "local_rank", "local_world_size", "coords")
        if getattr(place, name) is None
    }
    return replace(place, **gaps)


def _read(launcher: Launcher, environ: Mapping[str, str]) -> Place | None:
    rank = _number(environ, launcher.rank)
    world_size = _number(environ, launcher.world_size)
    if rank is None or (world_size is not None and rank >= world_size):
        return None  # RANK is a common word: somebody else's is not ours
    return Place(
        rank=rank,
        world_size=world_size,
        local_rank=_number(environ, launcher.local_rank),
        local_world_size=_number(environ, launcher.local_world_size),
        launcher=launcher.name,
    )


def _of_monarch(environ: Mapping[str, str]) -> Place | None:
    """What `monarch exec` tells: a place and a size for each dimension, the outermost first."""
    begins = {name[len(MONARCH_RANK) :] for name in environ if name.startswith(MONARCH_RANK)}
    dims = [name[len(MONARCH_SIZE) :] for name in environ if name.startswith(MONARCH_SIZE)]
    coords, rank, world_size = {}, 0, 1
    for dim in dims:
        at, size = (_number(environ, f"{each}{dim}") for each in (MONARCH_RANK, MONARCH_SIZE))
        if at is None or size is None or at >= size:
            return None
        coords[dim] = at
        rank, world_size = rank * size + at, world_size * size
    if not dims or begins != set(dims):
        return None
    return Place(rank=rank, world_size=world_size, launcher="Monarch", coords=coords)


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(_VARIABLE.sub(lambda inner: environ.get(inner[1], ""), name), "")
    return int(text) if text.isascii() and text.isdigit() else None
