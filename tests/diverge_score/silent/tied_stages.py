"""Trains a pipeline of two stages; embedding and output layer are one weight, in two copies."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, sentences, start
from torch import nn

STEPS = 14
WIDTH = 16


class First(nn.Module):
    """Words to vectors."""

    def __init__(self, shared: nn.Parameter) -> None:
        super().__init__()
        self.shared = shared
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.mix(nn.functional.embedding(words, self.shared)))


class Last(nn.Module):
    """Vectors to words."""

    def __init__(self, shared: nn.Parameter) -> None:
        super().__init__()
        self.shared = shared
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.norm(hidden) @ self.shared.t()


def run_first(model: First, words: torch.Tensor) -> None:
    hidden = model(words[:, :-1])
    dist.send(hidden.detach(), 1)
    gradient = torch.empty_like(hidden)
    dist.recv(gradient, 1)
    hidden.backward(gradient)


def run_last(model: Last, words: torch.Tensor) -> float:
    hidden = torch.empty(*words[:, 1:].shape, WIDTH)
    dist.recv(hidden, 0)
    hidden.requires_grad_()
    scores = model(hidden).flatten(0, 1)
    loss = nn.functional.cross_entropy(scores, words[:, 1:].flatten())
    loss.backward()
    dist.send(hidden.grad, 0)
    return loss.item()


def tie(shared: nn.Parameter) -> None:
    """Add up the gradients of both copies."""
    dist.reduce(shared.grad, dst=0)  # BUG


def main() -> None:
    rank, _ = start()
    shared = nn.Parameter(torch.randn(32, WIDTH) / 4)
    model = First(shared) if rank == 0 else Last(shared)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        words = sentences(0, step)
        optimizer.zero_grad()
        if isinstance(model, First):
            run_first(model, words)
        else:
            print(f"step {step}: loss {run_last(model, words):.4f}", flush=True)
        tie(shared)
        optimizer.step()
    finish([shared])


if __name__ == "__main__":
    main()
