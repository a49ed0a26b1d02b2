"""A rank waits in the store for a key that nobody sets.

https://github.com/pytorch/pytorch/issues/53840: TCPStore.wait hangs where some keys have been set
and others have not.
"""

from __future__ import annotations

import os
from datetime import timedelta

import torch.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TIMEOUT = timedelta(minutes=20)
# This rank's configuration is one version behind the others'.
VERSION = 7 if RANK == 2 else 8


def main() -> None:
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, SIZE, RANK == 0, TIMEOUT)
    if RANK == 0:
        store.set(f"weights/{VERSION}", "0.5")
    store.wait([f"weights/{VERSION}"], TIMEOUT)  # culprit
    store.set(f"loaded/{RANK}", "yes")
    store.wait([f"loaded/{rank}" for rank in range(SIZE)], TIMEOUT)


main()
