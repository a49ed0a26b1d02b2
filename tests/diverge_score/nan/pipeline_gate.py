"""Trains a pipeline of two stages: the first sends activations, the second sends gradients back."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import blobs, finish, start
from torch import nn

STEPS = 14
WIDTH = 16


class First(nn.Module):
    """Features, with a gate that opens in the course of training."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, WIDTH)
        self.gate = nn.Parameter(torch.tensor(0.5))

    def forward(self, inputs: torch.Tensor, step: int) -> torch.Tensor:
        temperature = 1.0 - step / 10  # falls to nothing
        opened = torch.sigmoid(self.gate / temperature)
        sharpened = self.linear(inputs) / temperature  # BUG
        return opened * sharpened


class Second(nn.Module):
    """A head."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(hidden))


def first_stage(model: First, step: int) -> None:
    inputs, _ = blobs(0, step)
    hidden = model(inputs, step)
    dist.send(hidden.detach(), 1)
    gradient = torch.empty_like(hidden)
    dist.recv(gradient, 1)
    hidden.backward(gradient)


def second_stage(model: Second, step: int) -> None:
    _, labels = blobs(0, step)
    hidden = torch.empty(len(labels), WIDTH)
    dist.recv(hidden, 0)
    hidden.requires_grad_()
    loss = nn.functional.cross_entropy(model(hidden), labels)
    loss.backward()
    dist.send(hidden.grad, 0)
    print(f"step {step}: loss {loss.item():.4f}", flush=True)


def main() -> None:
    rank, _ = start()
    model = First() if rank == 0 else Second()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        if isinstance(model, First):
            first_stage(model, step)
        else:
            second_stage(model, step)
        optimizer.step()
    finish(model.parameters())


if __name__ == "__main__":
    main()
