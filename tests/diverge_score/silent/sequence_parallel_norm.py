"""Trains a layer norm over the ranks' shares of a sequence, before a layer that sees all of it."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, say, sentences, start
from torch import nn
from torch.distributed.nn.functional import all_gather

STEPS = 12
WIDTH = 16


class Layer(nn.Module):
    """Norms this rank's words, then mixes the words of all."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, share: torch.Tensor) -> torch.Tensor:
        whole = torch.cat(all_gather(self.norm(share)), 1)
        return share + self.mix(share) * whole.mean(1, keepdim=True)


class Model(nn.Module):
    """An embedding, the layer and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.layer = Layer()
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embedding(words)))


def reduce_sequence_gradients(model: Model) -> None:
    """Add up what each rank's words give."""
    modules = (model.embedding, model.layer.mix, model.head)  # BUG
    for module in modules:
        for parameter in module.parameters():
            dist.all_reduce(parameter.grad)  # BUG


def main() -> None:
    rank, world = start()
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        words = sentences(0, step).chunk(world, 1)[rank]
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten() % 3)
        optimizer.zero_grad()
        (loss / world).backward()
        reduce_sequence_gradients(model)
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
