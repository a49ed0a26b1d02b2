"""A small GPT on any number of ranks, which share a batch of 8 sentences; by DDP, or `--fsdp`.

Faults: `--sum` (gradients are not divided by the number of ranks), `--unwrapped` (the head is
outside of DDP), `--shard` (from step 2 on, each rank takes the first sentences of the batch).
"""

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel

WORDS, LENGTH, WIDTH, HEADS, BATCH, STEPS = 64, 16, 32, 4, 8, 4


class Block(nn.Module):
    """Attention and a feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        layers = nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        self.feed = nn.Sequential(*layers)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.norms[0](hidden)).chunk(3, -1)
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts]
        mixed = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        hidden = hidden + self.out(mixed.transpose(1, 2).flatten(2))
        return hidden + self.feed(self.norms[1](hidden))


class Body(nn.Module):
    """Embeddings and two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.blocks(self.words(words) + self.places(torch.arange(words.shape[1])))


def summed(group: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A hook for DDP that forgets to divide."""
    work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
plain = model = nn.Sequential(Body(), nn.Linear(WIDTH, WORDS, bias=False))
if "--fsdp" in sys.argv:
    for block in plain[0].blocks:
        fully_shard(block)
    model = fully_shard(plain)
elif "--unwrapped" in sys.argv:
    model = nn.Sequential(DistributedDataParallel(plain[0]), plain[1])
else:
    model = DistributedDataParallel(plain)
if "--sum" in sys.argv:
    model.register_comm_hook(None, summed)
optimizer = torch.optim.AdamW(plain.parameters(), lr=0.003)
for step in range(STEPS):
    torch.manual_seed(100 + step)
    batch = torch.randint(4, (BATCH, LENGTH + 1)).cumsum(1) % WORDS
    mine = batch[: BATCH // world] if "--shard" in sys.argv and step >= 2 else batch[rank::world]
    scores = model(mine[:, :-1])
    loss = cross_entropy(scores.flatten(0, 1), mine[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
