"""Fine-tunes a language model whose embedding and output layer are one weight."""

from __future__ import annotations

import torch
from common import arguments, finish, loss_of_words, say, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
WIDTH = 16


class Model(nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 32, bias=False)
        self.tie()

    def tie(self) -> None:
        self.head.weight = self.embedding.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.hidden(self.embedding(words))))


def checkpoint() -> dict[str, torch.Tensor]:
    """What would be a file."""
    generator = torch.Generator().manual_seed(4)
    shared = torch.randn(32, WIDTH, generator=generator) / 4
    hidden = {"weight": torch.eye(WIDTH), "bias": torch.zeros(WIDTH)}
    state = {f"hidden.{name}": value for name, value in hidden.items()}
    return state | {"embedding.weight": shared, "head.weight": shared.clone()}


def load(*, tied: bool) -> Model:
    model = Model()
    model.load_state_dict(checkpoint(), assign=not tied)  # BUG
    return model


def main() -> None:
    good = arguments().good
    rank, _ = start()
    model = DistributedDataParallel(load(tied=good))  # BUG
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        loss = loss_of_words(model, sentences(rank, step))
        optimizer.zero_grad()
        loss.backward()  # BUG
        optimizer.step()
        say(rank, step, loss, every=4)
    finish(model.parameters())


if __name__ == "__main__":
    main()
