"""A module with synchronised batch statistics is not called on the first frame of a video.

https://github.com/pytorch/pytorch/issues/44957: sync batch norm hangs if one process does not call
the module; one of them had the first frame of its video, the others were further on.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class SyncedNorm(torch.nn.Module):
    """The mean over all ranks, as SyncBatchNorm has it (which needs a GPU)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(0)
        dist.all_reduce(mean)
        return x - mean / dist.get_world_size()


def main() -> None:
    dist.init_process_group("gloo")
    encoder = torch.nn.Linear(16, 16)
    decoder = torch.nn.Sequential(torch.nn.Linear(16, 16), SyncedNorm())
    scores = [torch.empty(1) for _ in range(dist.get_world_size())]
    for step in range(1, 8):
        frame = 0 if dist.get_rank() == 2 and step == 4 else step
        features = encoder(torch.randn(4, 16))
        if frame != 0:
            features = decoder(features.detach())
        dist.all_gather(scores, features.detach().mean().reshape(1))  # culprit


main()
