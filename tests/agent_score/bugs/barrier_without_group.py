"""Two ranks wait for each other at a barrier that is everybody's: the group is not given.

Trains with a group of two ranks that keep an average of the weights.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES = 20
AVERAGE_FROM = 6
MEMBERS = (6, 7)


class Average:
    """An average of weights over time, kept on some ranks for evaluation."""

    def __init__(self, model: torch.nn.Module, group: dist.ProcessGroup) -> None:
        self.group = group
        self.weights = [parameter.detach().clone() for parameter in model.parameters()]

    def update(self, model: torch.nn.Module) -> None:
        for average, parameter in zip(self.weights, model.parameters(), strict=True):
            average.lerp_(parameter.detach(), 0.1)
            dist.all_reduce(average, group=self.group)
            average.div_(len(MEMBERS))
        dist.barrier()  # BUG


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step * 8 + rank)
    inputs = torch.randn(48, FEATURES, generator=generator)
    return inputs, inputs.abs().sum(1, keepdim=True)


class Training:
    """A network, and from some step on its average."""

    def __init__(self, rank: int) -> None:
        torch.manual_seed(0)
        self.rank = rank
        network = torch.nn.Sequential(
            torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )
        self.model = DistributedDataParallel(network)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.average: Average | None = None
        self.group = dist.new_group(MEMBERS)

    def step(self, number: int) -> float:
        if number == AVERAGE_FROM and self.rank in MEMBERS:
            self.average = Average(self.model.module, self.group)
        inputs, targets = batch(self.rank, number)
        loss = (self.model(inputs) - targets).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.average is not None:
            self.average.update(self.model.module)
        return float(loss.detach())


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    training = Training(rank)
    for number in range(100_000):
        loss = training.step(number)
        if rank == 0:
            print(f"step {number}: loss {loss:.4f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
