"""A process has found a port of its own for where all of them meet.

https://github.com/pytorch/pytorch/issues/53395: init_process_group hangs, because each process
looked for a free port itself; MASTER_PORT needs to be the same for all processes in the group.
"""

from __future__ import annotations

import os

import torch.distributed as dist


def main() -> None:
    if os.environ["RANK"] == "2":
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)  # culprit: port
    dist.init_process_group("gloo")  # culprit
    dist.barrier()


main()
