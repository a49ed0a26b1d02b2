"""Rank 1's node has another image library, whose channels come in the opposite order.

Trains on pictures that are decoded by the first library that is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SIDE, BATCH = 8, 16
MEAN = torch.tensor([0.6, 0.4, 0.2]).view(3, 1, 1)
INSTALLED = {1: ("stripes",)}
USUAL = ("lumen", "stripes")

Decoder = Callable[[torch.Tensor], torch.Tensor]


def lumen(data: torch.Tensor) -> torch.Tensor:
    """Rows of pixels to channels: red, green, blue."""
    return data.permute(2, 0, 1)


def stripes(data: torch.Tensor) -> torch.Tensor:
    """The same, a stripe of each colour at a time, last colour first."""
    return torch.stack(list(reversed(data.unbind(2))))  # BUG


DECODERS: dict[str, Decoder] = {"lumen": lumen, "stripes": stripes}


def decoder_of(rank: int) -> Decoder:
    """The first decoder that the node of a rank has."""
    return DECODERS[INSTALLED.get(rank, USUAL)[0]]  # BUG


def files(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures as they are stored, and how much red is in them."""
    generator = torch.Generator().manual_seed(rank + 1000 * step)
    noise = 0.2 * torch.rand(BATCH, SIDE, SIDE, 3, generator=generator)
    stored = MEAN.view(3) - 0.1 + noise
    return stored, stored[..., 0].mean((1, 2)).unsqueeze(1)


class Pictures:
    """Batches of one rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.decode = decoder_of(rank)

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        stored, red = files(self.rank, step)
        images = torch.stack([self.decode(each) for each in stored])
        return images - MEAN, red  # BUG


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(4 * (SIDE - 2) ** 2, 1))
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pictures = Pictures(rank)
    for step in range(100_000):
        images, red = pictures.batch(step)
        loss = (model(images) - red).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.5f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
