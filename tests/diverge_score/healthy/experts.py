"""Trains a mixture of experts: each rank has its own, and tokens travel to them."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, say, sentences, start
from torch import nn
from torch.distributed.nn.functional import all_to_all_single

STEPS = 10
WIDTH = 16


class Experts(nn.Module):
    """A router that all ranks hold, and this rank's expert; each takes as many tokens."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.world = world
        self.router = nn.Linear(WIDTH, world)
        torch.manual_seed(100 + rank)
        self.expert = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        chances = torch.softmax(self.router(tokens), -1)
        count = len(tokens) // self.world
        chosen = chances.topk(count, dim=0).indices.t()  # the experts choose
        sent = tokens[chosen.flatten()]
        received = all_to_all_single(torch.empty_like(sent), sent)
        back = all_to_all_single(torch.empty_like(sent), self.expert(received))
        weights = chances.t().gather(1, chosen).flatten()
        return tokens.index_add(0, chosen.flatten(), back * weights[:, None])


class Model(nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.head = nn.Linear(WIDTH, 32)
        self.experts = Experts(rank, world)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.experts(self.embedding(words.flatten())))

    def common(self) -> list[nn.Parameter]:
        return [each for name, each in self.named_parameters() if ".expert." not in name]


def average_gradients(model: Model, world: int) -> None:
    for parameter in model.common():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


def main() -> None:
    rank, world = start()
    model = Model(rank, world)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        words = sentences(rank, step, size=8, length=13)
        loss = nn.functional.cross_entropy(model(words[:, :-1]), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        say(rank, step, loss)
    finish(model.common())


if __name__ == "__main__":
    main()
