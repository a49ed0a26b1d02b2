"""A build that was killed has left its lock file behind on one node.

https://github.com/pytorch/pytorch/issues/189245: all processes that find the file of a killed
compilation wait for it to disappear, forever.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch.distributed as dist


class FileBaton:
    def __init__(self, path: Path) -> None:
        self.path = path

    def wait(self) -> None:
        while self.path.exists():
            time.sleep(0.1)  # culprit


def build(cache: Path) -> None:
    FileBaton(cache / "lock").wait()  # culprit: build


def main() -> None:
    dist.init_process_group("gloo")
    with tempfile.TemporaryDirectory() as cache:  # the cache of this node
        if dist.get_rank() == 2:
            Path(cache, "lock").touch()
        build(Path(cache))
        dist.barrier()


main()
