"""Numbers of an mpi4py program: where two runs part, and a rank that stops before it sends NaN."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.launchers.launching import STARTS, launch, line
from tests.launchers.test_diverge import answer
from tests.launchers.test_not_finite import why_stopped
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import Done, User, listed
from tests.support.processes.mpi import mpi_environ

pytestmark = pytest.mark.timeout(300)
SOLVER: Final = Path(__file__).parent / "scripts" / "mpi_solver.py"
MPIRUN: Final = ("mpirun", "--oversubscribe", "-n", "4", "python", str(SOLVER))
ENGINE: Final = "openmpi"


async def does(user: User, *words: str) -> Done:
    """Run a command with Open MPI's programs in its path."""
    variables = mpi_environ(user.folder)
    return await (await launch(user, environment(ENGINE), [*words], **variables)).ends(
        within=STARTS
    )


async def test_two_runs_part_at_the_first_call_that_is_given_other_values(user: User) -> None:
    record = ("run", "--no-wait", "--listen", "0", "--comm", "hash", "--comm-file")
    assert (await does(user, *record, "fine", "--", *MPIRUN)).code == 0
    same = await does(user, "diverge", "fine", "--", *MPIRUN)
    assert same.out.endswith("no difference; ranks compared: 4\n"), same
    done = await does(user, "diverge", "fine", "--json", "--", *MPIRUN, "--coarse")
    assert done.code == 10, done
    body = answer(done)
    assert (body["step"], body["ranks"], body["next"]) == (None, [1], "")
    assert body["place"] == body["other"] == f"{SOLVER}:{line(SOLVER, 'world.Allreduce')} <module>"
    assert "Sendrecv #4 of group MPI_COMM_WORLD" in body["equal"]


async def test_a_rank_stops_before_it_sends_a_nan(user: User) -> None:
    words = ["run", "--catch-nan", "--", *MPIRUN, "--nan"]
    run = await launch(user, environment(ENGINE), words, **mpi_environ(user.folder))
    client = await joined(run, name="editor", timeout=STARTS)
    at = line(SOLVER, "world.allreduce(sum(rod))")
    rows = await listed(client, "line", None, at, None, None, within=STARTS)
    said = await why_stopped(client, rows[1])
    assert said["exceptionId"] == "Not finite"
    assert said["description"] == (
        "1 of 1 elements (1 NaN) of its input (float []) before allreduce #6 of MPI_COMM_WORLD"
    )
    await client.request("release", {"ranks": "all"}, timeout=STARTS)
    assert (await run.ends(within=STARTS)).code == 0
