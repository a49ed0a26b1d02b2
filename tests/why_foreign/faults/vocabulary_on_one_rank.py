"""The process that prepares the vocabulary waits in a barrier that the others do not call.

https://github.com/microsoft/Oscar/pull/196: the main process waits for ever, because the other
processes will not call torch.distributed.barrier().
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def load_vocabulary(prepares: bool) -> torch.Tensor:
    words = torch.arange(100)
    if prepares:
        words = words.sort().values
        dist.barrier()  # culprit
    return words


def main() -> None:
    dist.init_process_group("gloo")
    words = load_vocabulary(dist.get_rank() == 2)  # culprit: call
    for _ in range(5):
        dist.broadcast(words, src=0)
        dist.all_reduce(words)


main()
