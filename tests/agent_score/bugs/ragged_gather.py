"""Rank 7's last batch is smaller, and `all_gather` needs the same shape everywhere.

Scores items in batches and gathers the scores of all ranks.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

ITEMS = 8 * 30 * 12 - 7
BATCH = 30
WIDTH = 6


class Scorer(torch.nn.Module):
    """A number for each item."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1)
        )

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        return self.layers(items).squeeze(1)


def items_of(rank: int, size: int) -> torch.Tensor:
    """This rank's part of the items."""
    each = -(-ITEMS // size)
    first, end = rank * each, min((rank + 1) * each, ITEMS)
    numbers = torch.arange(first, end, dtype=torch.float32)
    return torch.stack([torch.sin(numbers * (k + 1)) for k in range(WIDTH)], 1)


def gathered(scores: torch.Tensor) -> torch.Tensor:
    """The scores of all ranks, in order."""
    parts = [torch.empty(BATCH) for _ in range(dist.get_world_size())]  # BUG
    dist.all_gather(parts, scores)  # BUG
    return torch.cat(parts)


@torch.no_grad()
def score(model: Scorer, items: torch.Tensor, rank: int) -> torch.Tensor:
    best = torch.tensor(-1e9)
    for number, batch in enumerate(items.split(BATCH)):
        scores = gathered(model(batch))
        best = torch.maximum(best, scores.max())
        if rank == 0:
            print(f"batch {number}: best {best.item():.4f} of {len(scores)}", flush=True)
        time.sleep(0.2)
    return best


def main() -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    best = score(Scorer(), items_of(rank, size), rank)
    if rank == 0:
        print(f"best of all: {best.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
