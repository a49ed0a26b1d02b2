"""What Open MPI's mpirun needs of its environment to be started by a test."""

from __future__ import annotations

from pathlib import Path


def mpi_environ(folder: Path) -> dict[str, str]:
    """Return the variables with which it runs also as root, and keeps its files in `folder`.

    One that was killed leaves a folder with its pid in its name, and another with that pid does not
    start beside it ("The PMIx server's listener thread failed to start", measured with 5.0.11).
    """
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "TMPDIR": str(folder),
    }
