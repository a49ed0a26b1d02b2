"""Trains with FSDP in bfloat16, gradients reduced in float32."""

from __future__ import annotations

import torch
from common import Block, finish, say, sentences, start
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

STEPS = 10


class Model(nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.blocks = nn.Sequential(Block(16), Block(16))
        self.head = nn.Linear(16, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embedding(words)))


def shard(model: Model) -> Model:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    return fully_shard(model, mp_policy=policy)


def main() -> None:
    rank, _ = start()
    model = shard(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        words = sentences(rank, step)
        scores = model(words[:, :-1]).float()
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
