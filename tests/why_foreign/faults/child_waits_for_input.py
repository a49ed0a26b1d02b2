"""A child process waits for input that never comes.

https://github.com/evilmartians/lefthook/issues/836: a hook stalls, waiting for its standard input,
until somebody enters a line.
"""

from __future__ import annotations

import subprocess
import sys

import torch.distributed as dist


def pull(asks: bool) -> int:
    """Run a helper, which asks for a password on a node that has none yet."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read(1)" if asks else ""]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    return child.wait()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    pull(asks=dist.get_rank() == 2)
    dist.barrier()


main()
