"""`dap-mux record` as tests use it: a launcher of a few lines, a job, the report that is left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dap_mux.frontends.report.report_file import Contents, read
from tests.support.processes.commands import Done, User
from tests.support.processes.launchers import LAUNCH
from tests.support.processes.proc_net import free_ports

TRAIN: Final = """\
import os, sys, threading, time

rank = int(os.environ["RANK"])
lock = threading.Lock()

def step(n):
    loss = 10.0 * (rank == 2) + n
    print("step", n, flush=True)
    return loss  # return

for n in range(3):
    step(n)
if "fail" in sys.argv and rank == 1:
    raise ValueError("shard is truncated")  # fail
if "hang" in sys.argv and rank == 2:
    with lock, lock:  # hang
        pass
while "fail" in sys.argv:
    time.sleep(0.01)
"""
WITHIN: Final = 60.0
SHIM: Final = '#!/bin/sh\nshift\nexec python launch.py "$@"\n'


def with_launcher(user: User) -> dict[str, str]:
    """Give the user a `torchrun --nproc-per-node N`; return the environment that finds it."""
    user.script(LAUNCH, "launch.py")
    path = Path(user.script(SHIM, "torchrun"))
    path.chmod(0o700)
    return {"PATH": f"{user.folder}:{user.command.parent}:{os.environ['PATH']}"}


async def record(user: User, *words: str, job: tuple[str, ...] = (), ranks: int = 4) -> Done:
    """Run `record WORDS -- python launch.py RANKS train.py JOB` to its end."""
    user.script(LAUNCH, "launch.py")
    ports = ["--base-port", str(free_ports(8))]
    launcher = [str(user.command.with_name("python")), "launch.py", str(ranks), "train.py", *job]
    run = await user.start("record", *ports, *words, "--", *launcher)
    return await run.ends(within=WITHIN)


def report_of(user: User, name: str = "report.dapmux") -> Contents:
    """Return what the report holds."""
    return read((user.folder / name).read_bytes(), name)
