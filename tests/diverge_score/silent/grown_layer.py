"""Trains a network that grows by a layer; rank 0 draws samples for its log."""

from __future__ import annotations

import torch
from common import average_gradients, blobs, finish, loss_of, start
from torch import nn

STEPS, GROWS = 16, 8


class Classifier(nn.Module):
    """As many hidden layers as it has grown."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.ModuleList([nn.Linear(8, 16)])
        self.head = nn.Linear(16, 4)

    def grow(self) -> None:
        layer = nn.Linear(16, 16)  # BUG
        self.hidden.append(layer)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for layer in self.hidden:
            inputs = torch.relu(layer(inputs))
        return self.head(inputs)


@torch.no_grad()
def log_samples(model: nn.Module, step: int) -> None:
    """Say what becomes of a random input."""
    chances = torch.softmax(model(torch.randn(1, 8)), 1)
    print(f"step {step}: {[round(each, 2) for each in chances[0].tolist()]}", flush=True)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def main() -> None:
    rank, _ = start()
    model = Classifier()
    optimizer = make_optimizer(model)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        if rank == 0 and step % 4 == 3:
            log_samples(model, step)
        if step == GROWS:
            model.grow()  # BUG
            optimizer = make_optimizer(model)
    finish(model.parameters())


if __name__ == "__main__":
    main()
