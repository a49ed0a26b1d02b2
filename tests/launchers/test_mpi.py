"""Open MPI and MPICH: four ranks that meet in an allreduce, by the commands of docs/launchers.md.

Nothing of dap-mux is installed in the environments of either.
"""

from __future__ import annotations

import pytest

from tests.launchers.launching import (
    EXAMPLES,
    STARTS,
    cast,
    control,
    documented,
    held,
    launch,
    line,
    released,
    weight,
)
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import User
from tests.support.processes.mpi import mpi_environ

pytestmark = pytest.mark.timeout(300)
TRAIN = EXAMPLES / "mpi" / "train.py"
REDUCE = line(TRAIN, "comm.allreduce(gradient)")


@pytest.mark.parametrize(("name", "title"), [("openmpi", "Open MPI"), ("mpich", "MPICH")])
async def test_ranks_of_mpirun(user: User, name: str, title: str) -> None:
    variables = mpi_environ(user.folder)
    run = await launch(user, environment(name), documented(title), **variables)
    program = str(user.folder / "examples" / "mpi" / "train.py")
    mine = {"line": REDUCE, "condition": "ranks(1,3): step == 2"}
    client = await joined(run, {program: [mine]}, timeout=STARTS)
    entries = await held(client, 1, 3, at=REDUCE)
    assert await cast(client, "stopped", "p step, rank, size") == [
        ("1", "(2, 1, 4)"),
        ("3", "(2, 3, 4)"),
    ]
    # Over the allreduce, which takes all four: the other two stand in it already.
    await control(client, "next", entries[1])
    await held(client, 1, 3, at=REDUCE + 1)
    assert await cast(client, "1,3", "p round(mean, 6)") == [("1,3", str(round(-45 * 0.85**2, 6)))]
    done = await released(user, run, client)
    assert done.out.splitlines() == [f"step {step} {weight(step + 1)}" for step in range(5)]
