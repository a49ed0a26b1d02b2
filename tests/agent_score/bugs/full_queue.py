"""Rank 4's thread that writes samples ends at a full disk, and a queue of eight is soon full.

Trains an autoencoder, and writes what it makes of some inputs in the background.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES, BATCH = 12, 16
QUOTA = {4: 6_000}  # bytes; the others have room enough


class Disk:
    """A folder with a quota."""

    def __init__(self, rank: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.left = QUOTA.get(rank, 10**12)

    def write(self, name: str, text: str) -> None:
        self.left -= len(text)
        if self.left < 0:
            raise OSError(122, "Disk quota exceeded", name)
        (self.folder / name).write_text(text, "utf-8")


class Gallery:
    """Samples, on their way to the disk."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.waiting: queue.Queue[tuple[int, list[float]]] = queue.Queue(8)
        threading.Thread(target=self.write_all, name="gallery", daemon=True).start()

    def write_all(self) -> None:
        try:
            while True:
                step, values = self.waiting.get()
                self.disk.write(f"{step % 20}.txt", " ".join(map(str, values)))  # BUG
        except OSError as error:
            print(f"gallery: {error}", flush=True)  # BUG

    def add(self, step: int, sample: torch.Tensor) -> None:
        self.waiting.put((step, sample.tolist()))  # BUG


class Autoencoder(torch.nn.Module):
    """Twelve features through four."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Linear(FEATURES, 4)
        self.decoder = torch.nn.Linear(4, FEATURES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.decoder(torch.tanh(self.encoder(inputs)))


def batch(rank: int, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(8 * step + rank)
    return torch.randn(BATCH, FEATURES, generator=generator).cumsum(1)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    gallery = Gallery(Disk(rank))
    model = DistributedDataParallel(Autoencoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(100_000):
        inputs = batch(rank, step)
        outputs = model(inputs)
        loss = (outputs - inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gallery.add(step, outputs.detach()[0])
        if rank == 0 and step % 5 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
