"""Rank 3 writes the log of all, and copies its whole history of losses to find the best three.

Goes on with a training of which some thousand steps are done.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RECORDER = 3
DONE = 6_000  # steps of the run that this one goes on with
FEATURES, BATCH = 10, 32


class History:
    """What became of each step."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = [
            {"step": step, "loss": 1 + math.exp(-step / 500), "rates": [0.1, 0.05]}
            for step in range(DONE)
        ]

    def add(self, step: int, loss: float) -> None:
        self.entries.append({"step": step, "loss": loss, "rates": [0.1, 0.05]})

    def best(self, count: int = 3) -> list[dict[str, Any]]:
        """Return the entries with the lowest losses, for the caller to keep."""
        entries = copy.deepcopy(self.entries)  # BUG
        return sorted(entries, key=lambda entry: float(entry["loss"]))[:count]


class Log:
    """Lines about the training, by one rank."""

    def __init__(self, rank: int) -> None:
        self.history = History() if rank == RECORDER else None

    def write(self, step: int, loss: float) -> None:
        if self.history is None:
            return
        self.history.add(step, loss)
        best = self.history.best()  # BUG
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.4f}, best {best[0]['loss']:.4f}", flush=True)


class Network(torch.nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(FEATURES, 16)
        self.head = torch.nn.Linear(16, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.hidden(inputs))).squeeze(1)


def samples(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(8 * step + rank)
    inputs = torch.randn(BATCH, FEATURES, generator=generator)
    return inputs, inputs[:, 0] * inputs[:, 1]


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    log = Log(rank)
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(DONE, 1_000_000):
        inputs, targets = samples(rank, step)
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.write(step, loss.item())  # BUG


if __name__ == "__main__":
    main()
