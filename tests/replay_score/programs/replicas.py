"""Trains replicas in several ways, each a kind of its own: `replicas.py KIND...`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from common import CLASSES, WIDTH, Batch, batch, net, run, tell
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

STEPS = 10
CHECKPOINT = Path("resumed.pt")


def loss_of(model: nn.Module, given: Batch) -> torch.Tensor:
    loss: torch.Tensor = nn.functional.cross_entropy(model(given[0]), given[1])
    return loss


def train(kind: str, model: nn.Module, batches: Iterable[Batch], every: int = 1) -> None:
    """Train a DDP model, synchronised at every so-manieth batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for number, given in enumerate(batches):
        is_last = (number + 1) % every == 0
        with nullcontext() if is_last else model.no_sync():
            loss = loss_of(model, given)
            loss.backward()
        if is_last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            optimizer.step()
            tell(kind, number, mean, model)
            optimizer.zero_grad()


def dropout(kind: str, rank: int, world: int) -> None:
    model = DistributedDataParallel(net(nn.Dropout(0.3)))
    torch.manual_seed(100 * world + rank)
    train(kind, model, (batch(rank, step) for step in range(STEPS)))


def batch_norm(kind: str, rank: int, world: int) -> None:
    model = DistributedDataParallel(net(nn.BatchNorm1d(16)))
    train(kind, model, (batch(rank, step) for step in range(STEPS)))


def no_sync(kind: str, rank: int, world: int) -> None:
    model = DistributedDataParallel(net(), bucket_cap_mb=1)
    train(kind, model, (batch(rank, step) for step in range(2 * STEPS)), every=2)


def join(kind: str, rank: int, world: int) -> None:
    """Each rank has two batches more than the one before."""
    model = DistributedDataParallel(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for step in range(4 + 2 * rank):
            loss = loss_of(model, batch(rank, step))
            loss.backward()
            optimizer.step()
            tell(kind, step, loss, model)
            optimizer.zero_grad()
    tell(kind, -1, torch.zeros(()), model)


def loader(kind: str, rank: int, world: int) -> None:
    """Two workers, which make the order of each epoch and a noise of their own."""
    labels = torch.arange(40 * world) % CLASSES
    points = torch.randn(40 * world, WIDTH) + labels[:, None]
    data = TensorDataset(points, labels)
    sampler = DistributedSampler(data, world, rank, seed=7)
    model = DistributedDataParallel(net())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        train(kind, model, DataLoader(data, 8, sampler=sampler, num_workers=2, collate_fn=noisy))


def noisy(rows: list[Batch]) -> Batch:
    points, labels = (torch.stack(each) for each in zip(*rows, strict=True))
    return points + 0.1 * torch.randn_like(points), labels


def accumulation(kind: str, rank: int, world: int) -> None:
    """Three batches a step, and gradients that are averaged by hand, all at once."""
    model = net(nn.LayerNorm(16))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        losses = [loss_of(model, batch(rank, 3 * step + at)) / 3 for at in range(3)]
        for loss in losses:
            loss.backward()
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        works = [dist.all_reduce(each, async_op=True) for each in gradients]
        for work in reversed(works):
            work.wait()
        optimizer.step()
        tell(kind, step, sum(losses, torch.zeros(())), model)
        optimizer.zero_grad()


def resumed(kind: str, rank: int, world: int) -> None:
    """Train, and save that; where it has been saved, go on from there."""
    model = DistributedDataParallel(net(nn.Dropout(0.1)))
    if not CHECKPOINT.exists():
        dist.barrier()
        train(kind, model, (batch(rank, step) for step in range(STEPS)))
        if rank == 0:
            torch.save({"model": model.state_dict(), "random": torch.get_rng_state()}, CHECKPOINT)
        return
    saved = torch.load(CHECKPOINT)
    model.load_state_dict(saved["model"])
    torch.set_rng_state(saved["random"])
    train(kind, model, (batch(rank, step) for step in range(STEPS, 2 * STEPS)))


KINDS = dropout, batch_norm, no_sync, join, loader, accumulation, resumed
if __name__ == "__main__":
    run(*KINDS)
