"""Trains a mixture of experts: each rank has its own, and all tokens visit each expert."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import blobs, finish, loss_of, say, start
from torch import nn
from torch.distributed.nn.functional import all_gather

STEPS = 12
WIDTH = 16


class Layer(nn.Module):
    """Weighs what this rank's expert makes of the tokens of all ranks."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.rank = rank
        self.expert_router = nn.Linear(WIDTH, world)
        self.expert = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        everything = torch.cat(all_gather(tokens))
        made = all_gather(torch.relu(self.expert(everything)))
        mine = [each.chunk(len(made))[self.rank] for each in made]
        weights = torch.softmax(self.expert_router(tokens), -1)
        return tokens + sum(weights[:, number, None] * output for number, output in enumerate(mine))


class Model(nn.Module):
    """The layer between two that all ranks hold."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.first = nn.Linear(8, WIDTH)
        self.head = nn.Linear(WIDTH, 4)
        self.layer = Layer(rank, world)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.first(inputs)))


def is_expert(name: str) -> bool:
    return "expert" in name  # BUG


def average_gradients(model: nn.Module, world: int) -> None:
    for name, parameter in model.named_parameters():
        if not is_expert(name):  # BUG
            dist.all_reduce(parameter.grad)  # BUG
            parameter.grad /= world


def main() -> None:
    rank, world = start()
    model = Model(rank, world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        say(rank, step, loss)
    router = model.layer.expert_router
    finish([*model.first.parameters(), *router.parameters(), *model.head.parameters()])


if __name__ == "__main__":
    main()
