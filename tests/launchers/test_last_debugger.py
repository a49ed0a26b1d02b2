"""The last debugger leaves before, while and after the ranks of a job come: no rank waits on.

With every launcher and engine that `dap-mux run` starts on this machine; SLURM's are in test_slurm.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from tests.launchers.launching import STARTS, Json, documented, launch, line, seen
from tests.launchers.named_ranks import AWAY, ranks
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.combinations import each_once, those
from tests.support.processes.commands import LIMIT, Command, User
from tests.support.processes.mpi import mpi_environ
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(300)
MOMENTS: Final = ("before", "while", "after")
LATE: Final = Path(__file__).with_name("scripts") / "late_ranks.py"
RANKS: Final = 4
DRIVERS: Final = ("client:0", "driver:0", "scheduler:0")


@dataclass(frozen=True)
class Launcher:
    """Its environments, what identifies its documented command, and a line of the program."""

    environments: tuple[str, ...]
    documented: str
    here: str
    ranks: int = RANKS
    dial: tuple[str, ...] = ()

    def program(self, user: User) -> Path:
        """The ranks' program."""
        (program,) = (each for each in documented(self.documented) if each.endswith("train.py"))
        return user.folder / program

    def words(self, user: User) -> list[str]:
        """The command."""
        (user.folder / "hosts").write_text(f"localhost:{RANKS}\n", "utf-8")
        command, *words = documented(self.documented)
        return [command, *self.dial, *words]


BACKWARD, REDUCE, ZERO = "loss.backward()", "comm.allreduce(gradient)", "optimizer.zero_grad()"
LAUNCHERS: Final = {
    "torchrun": Launcher(("torch",), "PyTorch", BACKWARD),
    "torchrun-calls": Launcher(("torch",), "PyTorch", BACKWARD, dial=("--dial",)),
    "openmpi": Launcher(("openmpi",), "Open MPI", REDUCE),
    "mpich": Launcher(("mpich",), "MPICH", REDUCE),
    "spawn": Launcher(("torch",), "torch.multiprocessing.spawn", ZERO),
    "lightning": Launcher(("torch",), "Lightning", 'self.log("loss", loss)', ranks=2),
    "accelerate": Launcher(("torch", "mpich"), "Accelerate", ZERO),
}


IN_CI: Final = {
    ("torchrun", "before"),
    ("torchrun-calls", "while"),
    ("openmpi", "after"),
    ("mpich", "before"),
}


async def came(client: DapClient, count: int) -> None:
    """Wait until at least so many ranks, beside a driver, are connected."""

    def there(found: dict[str, Json]) -> bool:
        names = {name for name, each in found.items() if each["state"] not in AWAY}
        return len(names - {*DRIVERS}) >= count

    await seen(lambda: ranks(client), there)


async def leave(client: DapClient) -> None:
    await client.request("disconnect", {"terminateDebuggee": False}, timeout=LIMIT)


async def ends(user: User, run: Command) -> str:
    """The job ends by itself; what it has printed."""
    done = await run.ends(within=STARTS)
    assert done.code == 0, done.err
    assert "Traceback" not in done.err, done.err
    await user.nothing_is_left(within=LIMIT)
    return done.out


@pytest.mark.parametrize(("name", "moment"), those(IN_CI, [*LAUNCHERS], MOMENTS))
async def test_the_ranks_of_a_launcher(user: User, name: str, moment: str) -> None:
    job = LAUNCHERS[name]
    path = os.pathsep.join(str(environment(each)) for each in job.environments)
    environ = {
        **mpi_environ(user.folder),
        "OMP_NUM_THREADS": "1",
        "DAP_MUX_DIAL_LISTEN": "127.0.0.1:0",
        "MASTER_PORT": str(free_ports(1)),
    }
    run = await launch(user, Path(path), job.words(user), **environ)
    program = job.program(user)
    held = {str(program): [line(program, job.here)]} if moment == "after" else {}
    client = await joined(run, held, timeout=STARTS)
    await came(client, {"before": 0, "while": 1, "after": job.ranks}[moment])
    if held:
        await client.wait_event("stopped", timeout=STARTS)
    await leave(client)
    await ends(user, run)


@pytest.mark.parametrize(
    ("engine", "way", "moment"),
    each_once(["ray", "dask", "monarch"], ["listens", "calls"], [*MOMENTS]),
)
async def test_the_ranks_of_an_engine(
    user: User, cluster: dict[str, str], engine: str, way: str, moment: str
) -> None:
    """Those that come once it has left, too: restarted actors, more workers, another mesh."""
    dial = ["--dial"] if way == "calls" else []
    words = ["run", *dial, "--", "python", str(LATE), engine]
    environ = {**cluster, "DAP_MUX_DIAL_LISTEN": "127.0.0.1:0"} if dial else cluster
    run = await launch(user, environment(engine), words, **environ)
    await left(user, run, moment)
    assert answered(await ends(user, run)) == [RANKS, 2 * RANKS if engine == "dask" else RANKS]


@pytest.mark.parametrize(("engine", "moment"), each_once(["ray", "dask"], [*MOMENTS]))
async def test_the_ranks_of_a_cluster(
    user: User, cluster: dict[str, str], engine: str, moment: str
) -> None:
    """The same of a job that others have started; the session stays."""
    python = environment(engine) / "python"
    job = await asyncio.create_subprocess_exec(
        str(python), str(LATE), engine,
        cwd=user.folder, env={**user.environ, **cluster}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    user.others.append(job)
    address = user.folder / "address"
    await until(address.exists, within=STARTS, what="a cluster")
    words = ["attach", f"{engine}:{address.read_text('utf-8')}", "--python", str(python)]
    await left(user, await user.start(*words, env=cluster), moment)
    output, _ = await asyncio.wait_for(job.communicate(), STARTS)
    assert job.returncode == 0
    counts = answered(output.decode())
    assert counts == [RANKS, 2 * RANKS if engine == "dask" else RANKS]


async def left(user: User, session: Command, moment: str) -> None:
    """Attach to a session, leave at this moment, and let all ranks come that have not yet."""
    client = await joined(session, timeout=STARTS)
    go, more = (user.folder / name for name in ("go", "more"))
    if moment != "before":
        go.touch()
        await came(client, {"while": 1, "after": RANKS}[moment])
    await leave(client)
    go.touch()
    more.touch()


def answered(output: str) -> list[int]:
    """How many ranks have, each time."""
    return [int(each.split()[1]) for each in output.splitlines() if each.startswith("answered")]
