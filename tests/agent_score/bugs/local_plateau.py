"""The learning rate follows each rank's own validation loss: rank 4 lowers it, the others do not.

Trains with DistributedDataParallel and ReduceLROnPlateau.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau

FEATURES = 12
ROWS = 128
VALIDATE_EVERY = 4

Batch = tuple[torch.Tensor, torch.Tensor]


def make_batch(seed: int, noise: float) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(ROWS, FEATURES, generator=generator)
    targets = inputs @ torch.linspace(0.2, 1.4, FEATURES)
    return inputs, targets + noise * torch.randn(ROWS, generator=generator)


class Validation:
    """The part of the validation set that one rank has: one hospital each."""

    def __init__(self, rank: int) -> None:
        sign = -1.0 if rank == 4 else 1.0
        inputs, targets = make_batch(5000 + rank, 0.1)
        self.inputs, self.targets = inputs, sign * targets

    @torch.no_grad()
    def loss(self, model: torch.nn.Module) -> float:
        return float((model(self.inputs).squeeze(1) - self.targets).square().mean())


class Training:
    """Model, optimizer and schedule."""

    def __init__(self, rank: int) -> None:
        torch.manual_seed(0)
        self.rank = rank
        self.model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.schedule = ReduceLROnPlateau(self.optimizer, factor=0.5, patience=2, min_lr=1e-4)
        self.validation = Validation(rank)

    def step(self, number: int) -> None:
        inputs, targets = make_batch(self.rank + 64 * number, 0.5)
        loss = (self.model(inputs).squeeze(1) - targets).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if number % VALIDATE_EVERY == 0:
            self.validate(number)

    def validate(self, number: int) -> None:
        loss = self.validation.loss(self.model.module)
        self.schedule.step(loss)  # BUG
        rate = self.optimizer.param_groups[0]["lr"]
        if self.rank == 0:
            print(f"step {number}: validation {loss:.4f}, rate {rate}", flush=True)


def main() -> None:
    dist.init_process_group("gloo")
    training = Training(dist.get_rank())
    for number in range(100_000):
        training.step(number)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
