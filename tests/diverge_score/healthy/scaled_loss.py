"""Trains with a scaled loss: gradients that overflow are expected, and their step left out."""

from __future__ import annotations

import torch
from common import blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 16


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


def make_scaler() -> torch.amp.GradScaler:
    """Begin far too high, as the default does."""
    return torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=4)


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = make_scaler()
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        with torch.autocast("cpu", torch.float16):
            scores = model(inputs)
        loss = nn.functional.cross_entropy(scores.float(), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}, scale {scaler.get_scale()}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
