"""Rank 4 has one batch less, so that its last window of accumulation ends within `no_sync`.

Trains epochs of a regression; gradients are synchronised every second batch.
"""

from __future__ import annotations

import contextlib
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 2
FEATURES = 24
BATCH = 16
ROWS = 16 * 20


def dataset(rank: int) -> TensorDataset:
    """The rows that this rank's store has, without duplicates."""
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(ROWS, FEATURES, generator=generator)
    weights = torch.linspace(-1, 1, FEATURES)
    targets = inputs @ weights + 0.1 * torch.randn(ROWS, generator=generator)
    kept = ROWS - 20 if rank == 4 else ROWS - rank
    return TensorDataset(inputs[:kept], targets[:kept])


def evaluate(model: torch.nn.Module, rows: TensorDataset) -> float:
    inputs, targets = rows.tensors
    with torch.no_grad():
        return float((model(inputs).squeeze(1) - targets).square().mean())


def train_epoch(
    model: DistributedDataParallel, optimizer: torch.optim.Optimizer, loader: DataLoader
) -> None:
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(loader, 1):
        synchronise = number % ACCUMULATE == 0  # BUG
        with contextlib.nullcontext() if synchronise else model.no_sync():  # BUG
            loss = (model(inputs).squeeze(1) - targets).square().mean() / ACCUMULATE
            loss.backward()
        if synchronise:
            optimizer.step()
            optimizer.zero_grad()
        time.sleep(0.05)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = dataset(rank)
    loader = DataLoader(rows, batch_size=BATCH, shuffle=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(FEATURES, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        train_epoch(model, optimizer, loader)
        dist.barrier()
        error = evaluate(model.module, rows)
        if rank == 0:
            print(f"epoch {epoch}: {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
