"""Trains with partitioned optimizer state: each rank updates its share of the parameters."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, say, start
from torch import nn

STEPS = 12


class Network(nn.Module):
    """A stack of four layers."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            inputs = inputs + torch.tanh(layer(inputs))
        return inputs


class Partitioned:
    """Adam for one layer in each rank."""

    def __init__(self, model: Network, rank: int) -> None:
        self.shares = [[*layer.parameters()] for layer in model.layers]
        self.optimizer = torch.optim.Adam(self.shares[rank], lr=0.01)

    def step(self) -> None:
        for share in self.shares:
            for parameter in share:
                dist.all_reduce(parameter.grad)
        self.optimizer.step()
        self.send_updates()

    @torch.no_grad()
    def send_updates(self) -> None:
        for owner in range(len(self.shares) - 1):  # BUG
            for parameter in self.shares[owner]:
                dist.broadcast(parameter, owner)  # BUG


def samples(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(40 * step + rank)
    inputs = torch.randn(24, 12, generator=generator)
    return inputs, inputs.roll(1, 1)


def main() -> None:
    rank, _ = start()
    model = Network()
    optimizer = Partitioned(model, rank)
    for step in range(STEPS):
        inputs, target = samples(rank, step)
        loss = (model(inputs) - target).square().mean()
        model.zero_grad()
        loss.backward()
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
