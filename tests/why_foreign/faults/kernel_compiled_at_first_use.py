"""One rank alone compiles a kernel at its first use, and waits for the compiler.

https://github.com/NVIDIA/TensorRT-LLM/pull/17286: while one rank compiles a kernel with nvcc, which
the others need not, they wait for it in the next collective until the job is aborted.
"""

from __future__ import annotations

import subprocess
import sys

import torch
import torch.distributed as dist

# Busy, as a compiler is; it ends with the rank that started it.
COMPILER = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""


def sampling_module(built: bool) -> str:
    if not built:
        subprocess.run([sys.executable, "-c", COMPILER], check=True)  # culprit
    return "sampling.so"


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(4):
        tokens = torch.ones(16)
        if step == 2:  # the first request that is not greedy
            sampling_module(built=dist.get_rank() != 2)  # culprit: call
        dist.all_reduce(tokens)


main()
