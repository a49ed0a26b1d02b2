"""A rank that has no tokens for the experts of others leaves the exchange out.

https://github.com/sgl-project/sgl-kernel-npu/issues/69: ranks without tokens go on without waiting,
and those that have some wait for messages from all ranks.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def dispatch(tokens: torch.Tensor) -> list[torch.Tensor]:
    if len(tokens) == 0:
        return []
    rank = dist.get_rank()
    peers = [peer for peer in range(dist.get_world_size()) if peer != rank]
    got = [torch.empty(8) for _ in peers]
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, tokens[peer], peer) for peer in peers]
        + [dist.P2POp(dist.irecv, into, peer) for into, peer in zip(got, peers, strict=True)]
    )
    for work in works:
        work.wait()
    return got


def main() -> None:
    dist.init_process_group("gloo")
    for layer in range(3):
        none = dist.get_rank() == 2 and layer == 1
        tokens = torch.ones(0 if none else dist.get_world_size(), 8)
        total = sum((each.sum() for each in dispatch(tokens)), torch.zeros(()))
        dist.all_reduce(total)  # culprit


main()
