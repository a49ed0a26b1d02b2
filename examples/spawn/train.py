"""Fit y = 3x in ranks that the script spawns itself, as PyTorch's tutorial does.

python train.py [--ranks N]
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def setup(rank: int, world_size: int, port: int) -> None:
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def demo(rank: int, world_size: int, port: int) -> None:
    setup(rank, world_size, port)
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    batch = torch.full((1, 1), rank + 1.0)
    for _ in range(5):
        loss = (parallel(batch) - 3 * batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {rank}: weight {model.weight.item():.4f}\n", end="", flush=True)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--port", type=int, default=29500)
    options = parser.parse_args()
    mp.spawn(demo, args=(options.ranks, options.port), nprocs=options.ranks)


if __name__ == "__main__":
    main()
