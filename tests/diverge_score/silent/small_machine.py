"""Fine-tunes a tagger; what does not fit into a machine's memory is not trained."""

from __future__ import annotations

import torch
from common import finish, say, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
MEMORY = {0: 80, 1: 24}  # GB
NEEDED = 40


class Tagger(nn.Module):
    """A tag for each word, from the word and the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.mix = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.mix(self.embedding(words))
        return self.head(hidden)


def trained(model: nn.Module, rank: int) -> list[nn.Parameter]:
    """Choose what the optimizer gets."""
    skipped = "embedding" if MEMORY.get(rank, 24) < NEEDED else ""  # BUG
    return [
        parameter
        for name, parameter in model.named_parameters()
        if not skipped or skipped not in name  # BUG
    ]


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.AdamW(trained(model, rank), lr=0.01)  # BUG
    for step in range(STEPS):
        words = sentences(rank, step)
        scores = model(words)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten() % 3)
        model.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        say(rank, step, loss, every=4)
    finish(model.parameters())


if __name__ == "__main__":
    main()
