"""Run by torch's Python: forks the ranks of one program after the other, so torch is imported once.

Each line of standard input is a job as JSON, answered by the exit codes of its ranks.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, Final

PRELOADED: Final = (
    "torch._dynamo",
    "torch.distributed._functional_collectives",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.distributed.tensor.parallel",
    "torch.nn.parallel",
)
ENDS_S: Final = 120.0
Job = dict[str, Any]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def be_rank(job: Job, rank: int, port: int) -> None:
    """Become one rank, with its trace, and end with the program."""
    code = 1
    switch: Any = import_module("dap_mux.rank.comm.switch")
    try:
        log = os.open(f"{job['folder']}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        size = str(job["nproc"])
        os.environ.update(job["env"], MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        os.environ.update(WORLD_SIZE=size, LOCAL_WORLD_SIZE=size, DAP_MUX_COMM_FILE=job["folder"])
        sys.argv = [job["program"], *job["arguments"]]
        sys.path[0] = str(Path(job["program"]).parent)
        sys.path.insert(0, job["env"].get("PYTHONPATH", ""))
        switch.begin(job["mode"], print, rank)
        runpy.run_path(job["program"], run_name="__main__")
        code = 0
    except BaseException:  # noqa: BLE001  (the parent's copy of this frame must not go on)
        traceback.print_exc()
    finally:
        switch.end()
        sys.stdout.flush()
        os._exit(code)


def run(job: Job) -> list[int]:
    """Run all ranks of a program; return their exit codes."""
    port, pids, codes = free_port(), list[int](), dict[int, int]()
    for rank in range(job["nproc"]):
        pid = os.fork()
        if not pid:
            be_rank(job, rank, port)
        pids.append(pid)
    end = time.monotonic() + ENDS_S
    while len(codes) < len(pids):
        for pid in pids:
            if pid not in codes:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    codes[pid] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return [codes[pid] for pid in pids]


def main() -> None:
    """Answer jobs until there are no more."""
    sys.path.append(str(Path(__file__).parents[2]))
    for name in PRELOADED:
        import_module(name)
    for text in sys.stdin:
        print(json.dumps(run(json.loads(text))), flush=True)


main()
