"""Fit y = 3x with DistributedDataParallel on CPU, the ranks laid out as dp x tp.

torchrun --nproc-per-node 4 train.py [--steps N] [--fail RANK]
"""

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--fail", type=int, metavar="RANK", help="a rank that meets bad data")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)

    for step in range(options.steps):
        shape = (2, 3) if rank == options.fail and step == 2 else (1, 1)
        batch = torch.full(shape, rank + 1.0)
        loss = (parallel(batch) - 3 * batch).square().mean()
        optimizer.zero_grad()
        loss.backward()  # every rank waits here for the gradients of all
        optimizer.step()
    if rank == 0:
        print(f"weight {model.weight.item():.4f} on {mesh}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
