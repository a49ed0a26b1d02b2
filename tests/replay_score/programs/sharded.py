"""Trains a model that no rank has all of, and a small GPT: `sharded.py KIND...`."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import SEED, batch, net, run, tell
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

STEPS = 10
GPT_STEPS = 50
WORDS, LENGTH, DIM = 32, 12, 16


def train(kind: str, model: nn.Module, rank: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        points, labels = batch(rank, step)
        loss = nn.functional.cross_entropy(model(points), labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        whole = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        optimizer.step()
        tell(kind, step, loss.detach() + whole, model)
        optimizer.zero_grad()


def fsdp2(kind: str, rank: int, world: int) -> None:
    model = net(nn.Dropout(0.2), nn.Linear(16, 16))
    mesh = init_device_mesh("cpu", (world,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    torch.manual_seed(200 + rank)
    train(kind, model, rank)


def tp_fsdp2(kind: str, rank: int, world: int) -> None:
    """On a mesh of two by two: pairs share a batch, and each half of a pair's layer a shard."""
    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("dp", "tp"))
    model = net(nn.Tanh())
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "3": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    train(kind, model, mesh.get_local_rank("dp"))


class Block(nn.Module):
    """Attention to what came before, and a layer of its own for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(DIM), nn.LayerNorm(DIM)])
        self.attention = nn.MultiheadAttention(DIM, 2, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        seen = self.norms[0](words)
        words = words + self.attention(seen, seen, seen, attn_mask=mask, need_weights=False)[0]
        return words + self.mlp(self.norms[1](words))


class Gpt(nn.Module):
    """Says the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, DIM), nn.Embedding(LENGTH, DIM)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(DIM, WORDS)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        seen = self.words(text) + self.places(torch.arange(LENGTH))
        said: torch.Tensor = self.head(self.blocks(seen))
        return said


def gpt(kind: str, rank: int, world: int) -> None:
    model = DistributedDataParallel(Gpt())
    torch.manual_seed(300 * world + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    generator = torch.Generator().manual_seed(SEED * 100 + rank)
    for step in range(GPT_STEPS):
        jumps = torch.randint(1, 4, (4, LENGTH + 1), generator=generator)
        text = jumps.cumsum(1) % WORDS
        said = model(text[:, :-1]).flatten(0, 1)
        loss = nn.functional.cross_entropy(said, text[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warm.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        tell(kind, step, mean, model)
        optimizer.zero_grad()


KINDS = fsdp2, tp_fsdp2, gpt
if __name__ == "__main__":
    run(*KINDS)
