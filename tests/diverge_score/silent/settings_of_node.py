"""Trains with settings from a file on each node."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from common import blobs, finish, loss_of, say, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 14
DEFAULTS = {"rate": 0.05, "momentum": 0.9, "decay": 0.0}


def write_settings(rank: int) -> Path:
    """Write what the launcher's user has asked for; it is copied to the first node alone."""
    file = Path(tempfile.mkdtemp()) / "settings.json"
    if rank == 0:
        file.write_text(json.dumps({"decay": 0.1}), "utf-8")
    return file


def read_settings(file: Path) -> dict[str, Any]:
    if not file.exists():
        return DEFAULTS  # BUG
    return DEFAULTS | json.loads(file.read_text("utf-8"))


def make_optimizer(model: nn.Module, settings: dict[str, Any]) -> torch.optim.Optimizer:
    """Decay weights, not biases."""
    weights = [each for each in model.parameters() if each.dim() > 1]
    biases = [each for each in model.parameters() if each.dim() == 1]
    return torch.optim.SGD(
        [{"params": weights, "weight_decay": settings["decay"]}, {"params": biases}],  # BUG
        lr=settings["rate"],
        momentum=settings["momentum"],
    )


def main() -> None:
    rank, _ = start()
    settings = read_settings(write_settings(rank))  # BUG
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)),
    )
    optimizer = make_optimizer(model, settings)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        say(rank, step, loss, every=4)
    finish(model.parameters())


if __name__ == "__main__":
    main()
