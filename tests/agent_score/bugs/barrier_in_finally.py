"""Rank 6 fails at a record without a price; its cleanup waits for all ranks before it says so.

Trains a forecast of prices, and tidies its scratch folder at the end.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BATCH = 20
COLUMNS = ("area", "rooms", "year")
BARE = {(6, 12)}  # the rank and step with a house that is not for sale


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for what a rank keeps in between; it goes when no rank needs it any more."""
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        dist.barrier()  # BUG
        shutil.rmtree(folder)


def houses(rank: int, step: int) -> list[dict[str, Any]]:
    chance = random.Random(50 * step + rank)
    found: list[dict[str, Any]] = []
    for _ in range(BATCH):
        house = {"area": chance.uniform(30, 200), "rooms": chance.randint(1, 7)}
        house["year"] = chance.randint(1900, 2020)
        found.append({**house, "price": 2 * house["area"] + 15 * house["rooms"]})
    if (rank, step) in BARE:
        del found[3]["price"]
    return found


def save(folder: Path, rank: int, step: int) -> Path:
    path = folder / f"{step % 4}.json"
    path.write_text(json.dumps(houses(rank, step)), "utf-8")
    return path


def load(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    table = json.loads(path.read_text("utf-8"))
    features = torch.tensor([[float(house[name]) for name in COLUMNS] for house in table])
    prices = torch.tensor([house["price"] / 100 for house in table])  # BUG
    return (features - torch.tensor([115.0, 4.0, 1960.0])) / torch.tensor([50.0, 2.0, 35.0]), prices


def train(folder: Path, rank: int) -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(len(COLUMNS), 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(100_000):
        features, prices = load(save(folder, rank, step))  # BUG
        loss = (model(features).squeeze(1) - prices).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    with scratch() as folder:
        train(folder, rank)


if __name__ == "__main__":
    main()
