"""A process is stopped by SIGSTOP.

https://github.com/NVIDIA/nvidia-resiliency-ext/blob/main/src/nvidia_resiliency_ext/inprocess/tools/inject_fault.py:
one of the faults that this tool injects into a rank is Fault.STOP, which sends it SIGSTOP.
"""

from __future__ import annotations

import os
import signal

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(4):
        if dist.get_rank() == 2 and step == 2:
            os.kill(os.getpid(), signal.SIGSTOP)  # culprit
        dist.all_reduce(torch.ones(2))


main()
