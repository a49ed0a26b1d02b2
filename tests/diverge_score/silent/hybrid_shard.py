"""Trains with parameters sharded over two ranks and replicated over two such pairs."""

from __future__ import annotations

import torch
from common import Block, finish, loss_of_words, say, sentences, start
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS = 10


class Model(nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(2))
        self.head = nn.Linear(16, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(words)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


def shard(model: Model, mesh: DeviceMesh) -> Model:
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model.head, mesh=mesh["shard"])  # BUG
    return fully_shard(model, mesh=mesh)


def main() -> None:
    rank, world = start()
    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("replicate", "shard"))
    model = shard(Model(), mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of_words(model, sentences(rank, step))
        loss.backward()  # BUG
        optimizer.step()
        optimizer.zero_grad()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
