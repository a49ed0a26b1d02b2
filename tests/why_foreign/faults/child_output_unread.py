"""A child process has filled the pipe of its output, which its parent does not read.

https://github.com/google/turbinia/issues/945: a subprocess with much output never ends, because the
parent waits for its end instead of reading the pipe.
"""

from __future__ import annotations

import subprocess
import sys

import torch.distributed as dist


def convert(lines: int) -> int:
    script = f"for line in range({lines}): print('converted', line)"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    return child.wait()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    convert(1_000_000 if dist.get_rank() == 2 else 10)
    dist.barrier()


main()
