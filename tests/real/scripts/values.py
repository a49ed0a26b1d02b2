"""Values to compare: numbers, arrays, a mesh that is renamed; each rank with its own."""

from __future__ import annotations

import os
import sys
import time
from types import ModuleType
from typing import Any, cast

import numpy as np

RANK = int(os.environ["RANK"])


class Extent:
    """A tensor's shape, without torch."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


class DeviceMesh:
    """What is read of torch's class of this name."""

    def __init__(self, **sizes: int) -> None:
        self.mesh_dim_names = tuple(sizes)
        self.mesh = Extent(*sizes.values())

    def get_coordinate(self) -> list[int]:
        return [int(place) for place in np.unravel_index(RANK, self.mesh.shape)]


library = cast(Any, ModuleType("torch.distributed.device_mesh"))
library.DeviceMesh = DeviceMesh
sys.modules[library.__name__] = library
mesh = DeviceMesh(dp=2, tp=2)
loss = float("nan") if RANK == 2 else 2.25


def train() -> None:
    config = {"lr": 0.1 if RANK else 0.2, "layers": [1, 2, 3]}
    weights = np.full((2, 3), RANK % 2, "float32")
    scalar = np.float32(0.1)
    print(config, weights, scalar)  # here
    time.sleep(0)


def main() -> None:
    global mesh  # noqa: PLW0603  (the job builds another mesh)
    train()
    mesh = DeviceMesh(replicate=4, shard=1)
    train()
    for _ in range(10_000):
        time.sleep(0.01)


main()
