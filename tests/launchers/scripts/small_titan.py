"""As torchtitan trains: FSDP2 and tensor parallelism on a mesh of 2 x 2, or one rank as 1 x 1.

`--by-rank`: from step 2 on each rank draws its own batch, also where two share one model.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

WORDS, WIDTH, STEPS = 64, 32, 4


class Block(nn.Module):
    """A feed-forward layer with gates."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.w1, self.w3 = (nn.Linear(WIDTH, 4 * WIDTH, bias=False) for _ in range(2))
        self.w2 = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        inside = self.norm(hidden)
        return hidden + self.w2(nn.functional.silu(self.w1(inside)) * self.w3(inside))


class Model(nn.Module):
    """Embedding, two blocks, norm and head."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleDict({str(at): Block() for at in range(2)})
        self.norm = nn.RMSNorm(WIDTH)
        self.output = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden = self.words(words)
        for layer in self.layers.values():
            hidden = layer(hidden)
        return self.output(self.norm(hidden))


def batch_of(seed: int) -> torch.Tensor:
    """Eight sentences of words that follow each other."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, (8, 17), generator=generator).cumsum(1) % WORDS


dist.init_process_group("gloo")
side = 2 if dist.get_world_size() == 4 else 1
mesh = init_device_mesh("cpu", (side, side), mesh_dim_names=("dp", "tp"))
torch.manual_seed(0)
model = Model()
for layer in model.layers.values():
    plan = {"w1": ColwiseParallel(), "w3": ColwiseParallel(), "w2": RowwiseParallel()}
    parallelize_module(layer, mesh["tp"], plan)
    fully_shard(layer, mesh=mesh["dp"])
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
for step in range(STEPS):
    seed = 10 * step
    if "--by-rank" in sys.argv and step >= 2:
        seed += dist.get_rank()
    batch = batch_of(seed)[mesh["dp"].get_local_rank() :: side]
    scores = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
