"""A job whose ranks are taken home: it uses DDP, dropout, `no_sync`, groups, messages, a store.

The last line of each rank is all that it has learnt. With `fail` rank 2 fails in step 5.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def step(model: DistributedDataParallel, batch: torch.Tensor, synchronised: bool) -> torch.Tensor:
    """Forward and backward."""
    with nullcontext() if synchronised else model.no_sync():
        loss: torch.Tensor = model(batch).pow(2).mean()
        loss.backward()
    return loss.detach()


def exchange(value: float) -> float:
    """Send a number to the next rank, and receive one."""
    received = torch.empty(1)
    operations = [
        dist.P2POp(dist.isend, torch.tensor([value]), (rank + 1) % world),
        dist.P2POp(dist.irecv, received, (rank - 1) % world),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    work = dist.isend(torch.tensor([rank]), (rank + 2) % world)
    sender = dist.recv(torch.zeros(1, dtype=torch.long))
    work.wait()
    return float(received) + sender


def meet() -> dist.TCPStore:
    """A store of the job's own, whose port only rank 0 knows."""
    store = dist.TCPStore("127.0.0.1", 0, world, is_master=True, wait_for_workers=False)
    port: list[int] = [store.port]
    dist.broadcast_object_list(port, 0)
    return store if rank == 0 else dist.TCPStore("127.0.0.1", port[0], world)


def main() -> None:
    """Train for a few steps."""
    store = meet()
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3], backend="gloo")]
    torch.manual_seed(1)
    layers = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1)
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters())
    torch.manual_seed(100 + rank)
    data = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8, num_workers=2)
    total = 0.0
    for number, (batch,) in enumerate(data):
        loss = step(model, batch, number % 2 == 1)
        if number % 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        dist.all_reduce(loss, group=pairs[rank // 2])
        names: list[object] = [None] * world
        dist.all_gather_object(names, {"rank": rank, "total": total})
        total += float(loss) + exchange(total) + store.add(f"come {number}", 1)
        if "fail" in sys.argv and rank == 2 and number == 5:
            raise ValueError(f"total {total!r}")
    learnt = sum(float(each.detach().double().sum()) for each in model.state_dict().values())
    sys.stdout.write(f"rank {rank} {total!r} {learnt!r}\n")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    main()
    dist.destroy_process_group()
