"""Which rank am I: read from the variables that launchers set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where this process stands in its job; every number is None where nobody said it."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    launcher: str | None = None


@dataclass(frozen=True)
class Launcher:
    """The names of one launcher's variables; "" where it has none."""

    name: str
    rank: str
    world_size: str
    local_rank: str
    local_world_size: str = ""


# The order decides where two apply: a torchrun inside an srun, an mpirun inside an sbatch.
# The inner launcher knows better, and SLURM sets its variables in every job step.
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
    Launcher("SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)


def place_of(environ: Mapping[str, str]) -> Place:
    """The place that the first launcher with a sensible rank gives, else an empty one."""
    for launcher in LAUNCHERS:
        place = _read(launcher, environ)
        if place is not None:
            return place
    return Place()


def _read(launcher: Launcher, environ: Mapping[str, str]) -> Place | None:
    rank = _number(environ.get(launcher.rank))
    world_size = _number(environ.get(launcher.world_size))
    if rank is None or (world_size is not None and rank >= world_size):
        return None  # RANK is a common word: somebody else's is not ours
    return Place(
        rank=rank,
        world_size=world_size,
        local_rank=_number(environ.get(launcher.local_rank)),
        local_world_size=_number(environ.get(launcher.local_world_size)),
        launcher=launcher.name,
    )


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return int(text)
