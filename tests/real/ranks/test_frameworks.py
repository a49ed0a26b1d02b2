"""Ranks that a library makes: no launcher says who they are.

A `torch` of a few lines stands for the real one, which tests/launchers has: it passes the rank on
in files, as a rendezvous, so that a rank that meets the others has been debugged from there on.
"""

from __future__ import annotations

import sys

import pytest

from tests.real.command_line.launched_job import finish, go_on, launch, listening_or_calling
from tests.real.driving import joined
from tests.support.processes.commands import User, line_of, listed

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]

C10D = """\
def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None
):
    global _rank, _size
    _rank, _size = rank, world_size

def get_rank():
    return _rank

def get_world_size():
    return _size
"""
SPAWNS = """\
import multiprocessing
import sys
import torch.distributed as dist


def child(rank):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    sys.stdout.write(f"child of {rank}\\n")  # in a child


def work(rank, how):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    square = rank * rank  # square
    sys.stdout.write(f"worker {dist.get_rank()} {square}\\n")
    sys.stdout.flush()
    below = multiprocessing.get_context(how).Process(target=child, args=(rank,))
    below.start()
    below.join()


if __name__ == "__main__":
    how = sys.argv[1]
    context = multiprocessing.get_context(how)
    workers = [context.Process(target=work, args=(rank, how)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(max(worker.exitcode for worker in workers))
"""
MAIN_AND_ONE = """\
import os
import subprocess
import sys
import torch.distributed as dist

rank = int(os.environ.get("LOCAL_RANK", 0))
if rank == 0:
    environ = {**os.environ, "LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2"}
    other = subprocess.Popen([sys.executable, __file__], env=environ)
dist.init_process_group("gloo", rank=rank, world_size=2)
sys.stdout.write(f"rank {dist.get_rank()}\\n")  # here
sys.stdout.flush()
sys.exit(rank == 0 and other.wait())
"""


def with_torch(user: User) -> None:
    """Put the small torch beside the program."""
    folder = user.folder / "torch" / "distributed"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").write_text("from .distributed_c10d import *\n", "utf-8")
    (folder / "distributed_c10d.py").write_text(C10D, "utf-8")


@pytest.mark.parametrize("how", ["fork", "spawn"])
async def test_workers_that_pass_their_rank_to_torch(user: User, how: str) -> None:
    """They are ranks from there on; what they start themselves is none."""
    with_torch(user)
    script = user.script(SPAWNS)
    run = await launch(user, script, how)
    lines = [line_of(script, "square"), line_of(script, "in a child")]
    client = await joined(run, {script: lines})
    entries = await listed(client, "line", lines[0], lines[0])
    assert [entry["rank"] for entry in entries] == [0, 1]
    frames = await go_on(client, entries)
    assert "init_process_group" not in {frame["name"] for frame in frames}
    await finish(client)
    done = await run.ends()
    said = ["child of 0", "child of 1", "worker 0 0", "worker 1 1"]
    assert (done.code, sorted(done.out.splitlines())) == (0, said), done.err
    await user.nothing_is_left()


@listening_or_calling
async def test_a_main_process_that_starts_the_others_and_is_a_rank(
    user: User, options: tuple[str, ...]
) -> None:
    """As Lightning does: its main process knows its rank last of all."""
    with_torch(user)
    script = user.script(MAIN_AND_ONE)
    run = await launch(user, script, options=options)
    here = line_of(script, "here")
    client = await joined(run, {script: [here]})
    await go_on(client, await listed(client, "line", here, here))
    await finish(client)
    done = await run.ends()
    assert (done.code, sorted(done.out.splitlines())) == (0, ["rank 0", "rank 1"]), done.err
    await user.nothing_is_left()


async def test_a_job_without_ranks_hears_early_what_makes_one(user: User) -> None:
    early = "from dap_mux.session import launcher_job\nlauncher_job.NO_RANK_WARNING_S = 0.1\n"
    folder = user.folder.parent / "early"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(early, "utf-8")
    script = user.script("import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\n")
    environ = {"PYTHONPATH": str(folder)}
    run = await user.start("run", "--", sys.executable, "-S", script, env=environ)
    await run.says("no rank has started within 0.1 s: dap-mux recognizes a rank")
    (user.folder / "go").touch()
    done = await run.ends()
    assert done.code == 0
    assert "torch.distributed.init_process_group" in done.err
    assert "the launcher ended, and none of its Python processes was a rank" in done.err
