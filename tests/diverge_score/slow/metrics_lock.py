"""Trains, and keeps metrics that a thread writes to a file."""

from __future__ import annotations

import os
import tempfile
import threading
import time

import torch
from common import arguments, blobs, finish, learn, loss_of, start, until
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FLUSH = {1: 0.05}  # s; where files are on the network


class Metrics:
    """Losses, until they are written."""

    def __init__(self, rank: int) -> None:
        self.lock = threading.Lock()
        self.losses: list[float] = []
        self.flush = FLUSH.get(rank, 0.0005)
        self.folder = tempfile.mkdtemp()
        threading.Thread(target=self.write_all, daemon=True).start()

    def add(self, loss: float) -> None:
        with self.lock:  # BUG
            self.losses.append(loss)

    def write_all(self) -> None:
        while True:
            with self.lock:
                self.write()
            time.sleep(0.002)

    def write(self) -> None:
        with open(os.path.join(self.folder, "losses"), "a", encoding="utf-8") as file:  # noqa: PTH118, PTH123
            file.writelines(f"{loss}\n" for loss in self.losses)
        time.sleep(self.flush)  # BUG
        self.losses.clear()


def make_model() -> nn.Module:
    torch.manual_seed(3)
    return DistributedDataParallel(
        nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)),
    )


def main() -> None:
    seconds = arguments().seconds
    rank, _ = start()
    metrics = Metrics(rank)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in until(seconds):
        loss = loss_of(model, blobs(rank, step))
        learn(optimizer, loss)
        metrics.add(loss.item())  # BUG
    finish(model.parameters())


if __name__ == "__main__":
    main()
