"""There are fewer shards than ranks, and the loader of a rank without any looks for one for ever.

https://github.com/karpathy/nanochat/issues/371: with few parquet files training hangs in
next(train_loader), which seems to be stuck in an infinite loop.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.distributed as dist

ROW_GROUPS = {0: [0, 4], 1: [1, 5], 3: [3, 7]}


def tokens(rank: int) -> Iterator[torch.Tensor]:
    position = 0
    while True:
        for group in ROW_GROUPS.get(rank, []):
            yield torch.full((16,), float(group))
        position += 1  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    loader = tokens(dist.get_rank())
    dist.barrier()
    for _ in range(10):
        batch = next(loader)  # culprit: next batch
        dist.all_reduce(batch)


main()
