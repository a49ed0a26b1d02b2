"""Trains with an optimizer of its own, an Adam without a floor under the root."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from common import finish, say, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class Optimizer(torch.optim.Optimizer):
    """Divides each gradient by the root of its mean square."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                square = state.setdefault("square", torch.zeros_like(parameter))
                square.mul_(0.9).add_(0.1 * parameter.grad.square())
                parameter.sub_(group["lr"] * parameter.grad / square.sqrt())  # BUG


class Tagger(nn.Module):
    """A tag for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(words))


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Tagger())
    optimizer = Optimizer(model.parameters(), lr=0.02)
    for step in range(STEPS):
        words = sentences(rank, step, size=32)
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten() % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
