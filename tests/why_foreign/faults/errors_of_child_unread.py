"""The output of a child is read to its end, while the child is blocked by its errors.

https://github.com/alfredodeza/remoto/issues/62: the child fills the pipe of its stderr and is
blocked there; then stdout never reaches its end, and the parent never returns from reading it.
"""

from __future__ import annotations

import subprocess
import sys

import torch
import torch.distributed as dist

CHECK = "import sys; sys.stderr.write('w' * int(sys.argv[1])); print('ok')"


def check_remote(warnings: int) -> int:
    command = [sys.executable, "-c", CHECK, str(warnings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        return len(child.stdout.read())  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    length = check_remote(1_000_000 if dist.get_rank() == 2 else 10)  # culprit: call
    dist.all_reduce(torch.tensor([length]))


main()
