"""Early stopping is met on one rank, whose process ends.

https://github.com/Lightning-AI/pytorch-lightning/issues/379: if the stop condition is met in one
process but not in all, that one stops, the others are still running, and the training hangs.
"""

from __future__ import annotations

import os
from datetime import timedelta

import torch.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TIMEOUT = timedelta(minutes=20)


def accuracy(epoch: int) -> float:
    return 0.95 if RANK == 2 and epoch == 3 else 0.5 + epoch / 100


def main() -> None:
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, SIZE, RANK == 0, TIMEOUT)
    for epoch in range(10):
        if accuracy(epoch) > 0.9:
            print("early stopping in epoch", epoch)
            return  # culprit
        store.set(f"epoch-{epoch}/rank-{RANK}", "done")
        store.wait([f"epoch-{epoch}/rank-{rank}" for rank in range(SIZE)], TIMEOUT)


main()
