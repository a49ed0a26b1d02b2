"""Trains with FSDP, and gradients of one block reduced in a type of its own."""

from __future__ import annotations

import torch
from common import Block, arguments, blobs, finish, loss_of, say, start
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

STEPS = 10
WIDTH = 16


class Model(nn.Module):
    """Two blocks between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, WIDTH)
        self.blocks = nn.Sequential(Block(WIDTH), Block(WIDTH))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.first(inputs)))


def shard(model: Model, reduced_in: torch.dtype) -> Model:
    exact = MixedPrecisionPolicy(reduce_dtype=torch.float32)
    fully_shard(model.blocks[0], mp_policy=exact)
    special = MixedPrecisionPolicy(reduce_dtype=reduced_in)
    fully_shard(model.blocks[1], mp_policy=special)  # BUG
    return fully_shard(model, mp_policy=exact)


def main() -> None:
    good = arguments().good
    rank, _ = start()
    model = shard(Model(), torch.float32 if good else torch.bfloat16)  # BUG
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        loss.backward()  # BUG
        optimizer.step()
        optimizer.zero_grad()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
