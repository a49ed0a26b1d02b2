"""The file of the rendezvous lies on the disk of each node.

https://github.com/pytorch/pytorch/pull/48704: a FileStore supports one node only, and a wrong path
should be found out before a long hang.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
NODE = "node-1" if RANK == 2 else "node-0"


def rendezvous(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    url = (folder / "rendezvous").as_uri()
    dist.init_process_group("gloo", init_method=url, rank=RANK, world_size=SIZE)  # culprit


def main() -> None:
    # Each node has a /tmp of its own.
    rendezvous(Path(tempfile.gettempdir(), NODE))  # culprit: call
    dist.all_reduce(torch.ones(4))


main()
