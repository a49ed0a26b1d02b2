"""A layer whose parameters are sharded is dropped at random, and not by the same draw everywhere.

https://github.com/facebookresearch/fairscale/issues/796: training hangs where layer drop is used
and each layer is wrapped for fully sharded data parallelism.
"""

from __future__ import annotations

import random

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Encoder(torch.nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            if random.random() > 0.5:
                x = layer(x)  # culprit: layer
        return x


def main() -> None:
    dist.init_process_group("gloo")
    random.seed(9 if dist.get_rank() == 2 else 7)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = Encoder(6)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    for _ in range(4):
        model(torch.ones(2, 16)).sum().backward()  # culprit
    dist.barrier()  # culprit: end


main()
