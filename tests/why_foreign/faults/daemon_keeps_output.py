"""A command has started a daemon and ended, and the daemon keeps the pipe of its output.

https://github.com/python/cpython/issues/76116: the wait for a command's output does not end with
the command, if a grandchild that has inherited the pipe still runs.
"""

from __future__ import annotations

import subprocess

import torch
import torch.distributed as dist

# A server, which goes on as long as the rank does, and its port.
START = "(while kill -0 $PPID; do sleep 1; done) {} 2>/dev/null & echo 8080"


def start_server(redirection: str) -> int:
    command = START.format(redirection)
    return int(subprocess.check_output(["sh", "-c", command]))  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    port = start_server("" if dist.get_rank() == 2 else ">/dev/null")  # culprit: call
    dist.all_reduce(torch.tensor([port]))


main()
