"""A rank whose batch is empty skips the forward of a model that FSDP2 has sharded.

https://github.com/pytorch/pytorch/issues/152964: every rank needs to call forward and backward, but
data loaders return empty input for certain ranks, and the job hangs.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def batch(step: int) -> torch.Tensor:
    size = 0 if dist.get_rank() == 2 and step == 2 else 4
    return torch.randn(size, 16)


def main() -> None:
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 16))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for step in range(5):
        inputs = batch(step)
        if len(inputs) == 0:
            print("nothing to do in step", step)
        else:
            model(inputs).sum().backward()
        tokens = torch.tensor([len(inputs)])
        dist.all_reduce(tokens)  # culprit


main()
