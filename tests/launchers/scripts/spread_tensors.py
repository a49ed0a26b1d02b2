"""A tensor that is spread over four ranks, and one that each of them has, for the array viewer."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor


def work(rank: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole = torch.arange(4096 * 4100, dtype=torch.float32).reshape(4096, 4100)
    columns = distribute_tensor(whole, mesh, [Replicate(), Shard(1)])
    both = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    small = torch.full((3, 8), float(rank), dtype=torch.bfloat16)
    shown = (whole, columns, both, small)
    assert isinstance(shown[1], DTensor)  # the ranks are stopped here


dist.init_process_group("gloo")
work(dist.get_rank())
dist.destroy_process_group()
