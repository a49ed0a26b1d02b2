"""A sharded tensor is put together on the rank that saves it, and on no other.

https://github.com/areal-project/AReaL/pull/187: full_tensor() should be called in all ranks and was
called in one only.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def upload(weights: torch.Tensor) -> None:
    print("uploading", tuple(weights.shape))


def main() -> None:
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    weights = distribute_tensor(torch.randn(16, 16), mesh, [Shard(0)])
    dist.barrier()
    uploading = 2
    if dist.get_rank() == uploading:
        upload(weights.full_tensor())  # culprit
    dist.barrier()


main()
