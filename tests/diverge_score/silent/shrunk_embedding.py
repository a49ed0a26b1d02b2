"""Trains word vectors, and shrinks them where they have grown too long."""

from __future__ import annotations

import torch
from common import finish, learn, loss_of_words, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 16
LONGEST = 4.6


class Vectors(nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 12)
        self.head = nn.Linear(12, 32, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(words))


@torch.no_grad()
def shrink(embedding: nn.Embedding, words: torch.Tensor) -> int:
    """Bring the vectors back to a length that training can stand; return how many were longer."""
    lengths = embedding.weight.norm(dim=1)
    used = words.unique()  # BUG
    longer = used[lengths[used] > LONGEST]  # BUG
    embedding.weight[longer] *= LONGEST / lengths[longer, None]  # BUG
    return len(longer)


def main() -> None:
    rank, _ = start()
    vectors = Vectors()
    model = DistributedDataParallel(vectors)
    optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
    for step in range(STEPS):
        words = sentences(rank, step, size=2, length=6)
        loss = loss_of_words(model, words)
        learn(optimizer, loss)
        shrunk = shrink(vectors.embedding, words)  # BUG
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}, {shrunk} shrunk", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
