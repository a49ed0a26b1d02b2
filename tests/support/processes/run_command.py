"""`dap-mux run` in the words of its tests: programs, and how their ranks are started."""

from __future__ import annotations

from dap_mux.client import DapClient
from tests.support.processes.commands import (
    LIMIT,
    Command,
    User,
)
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

LAUNCH = {"justMyCode": True}

COUNT = """\
import json
import os

rank = int(os.environ["RANK"])
print("begin", json.dumps(dict(os.environ)))


def step(number):
    loss = 10 * rank + number  # loss
    return loss  # return


for number in range(3):
    step(number)
print("end", rank)
"""
WAIT = """\
import os
import sys
import time
from pathlib import Path

while not Path("go").exists():
    time.sleep(0.01)  # wait
print("end")
"""


async def start(user: User, *words: str, n: int, **env: str) -> Command:
    """Start `run -n N` on ports that are free, with its logs beside the program."""
    return await user.start(*run_words(*words, n=n), env=env)


def run_words(*words: str, n: int) -> list[str]:
    """The words of that command."""
    ports = ["--base-port", str(free_ports(2 * n))]
    return ["run", "-n", str(n), *ports, "--log-dir", "logs", *words]


def log(user: User, rank: int) -> str:
    """What a rank has written so far."""
    path = user.folder / "logs" / f"rank-{rank}.log"
    return path.read_text("utf-8") if path.exists() else ""


async def listening(user: User, n: int) -> None:
    """Wait until every rank has said that it listens."""
    said = [f"rank {rank} of {n} listens" for rank in range(n)]
    await until(
        lambda: all(said[rank] in log(user, rank) for rank in range(n)),
        within=LIMIT,
        what="every rank listens",
    )


async def resume(client: DapClient, thread: int) -> None:
    await client.request("continue", {"threadId": thread}, timeout=LIMIT)
