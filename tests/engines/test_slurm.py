"""SLURM: a job of four ranks on two nodes, found by its number.

Its batch script is the one of examples/slurm, submitted by the commands of docs/slurm.md.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engines import tour
from tests.support.commands import User, user
from tests.support.private_network import possible
from tests.support.slurm_cluster import SlurmCluster, slurm_cluster

__all__ = ["user"]

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not possible(), reason="only root may make hosts with own networks"),
]


@pytest.fixture
async def slurm(
    tmp_path_factory: pytest.TempPathFactory, user: User, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlurmCluster]:
    """A cluster that the user's commands find, with `python` in its jobs' PATH."""
    async with slurm_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        user.environ.update(cluster.environ)
        yield cluster


def batch(user: User) -> Path:
    """The example's folder, as a user has copied it."""
    shutil.copytree(ROOT / "examples", user.folder / "examples")
    return user.folder / "examples" / "slurm"


def output(folder: Path, job: int) -> str:
    path = folder / f"slurm-{job}.out"
    return path.read_text("utf-8") if path.exists() else ""


async def test_a_batch_job_is_attached_to_by_its_number(user: User, slurm: SlurmCluster) -> None:
    folder = batch(user)
    program = str(folder.parent / "data_parallel.py")
    job = slurm.submit(str(folder / "train.sbatch"), *tour.OPTIONS, cwd=folder)
    attach = await user.start("attach", f"slurm:{job}")
    client = await attach.client()
    await tour.attach(client, program)
    await tour.two_held(client)
    await tour.ask_and_step(client)
    await tour.let_go(client)
    assert await slurm.ends(job) == "COMPLETED", output(folder, job)
    tour.check_result(output(folder, job))
    done = await attach.ends()  # it has seen in the queue that the job is over
    assert (done.code, done.out) == (0, ""), done.err
