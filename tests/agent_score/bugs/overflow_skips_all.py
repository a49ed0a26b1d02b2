"""A silent recording on rank 3 is divided by its deviation, 0; its NaN makes all skip the step.

Trains on recordings with a scaled loss: a step whose gradients overflow is left out.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SAMPLES = 64
BATCH = 8
QUIET = {3}  # rooms where a microphone is off


def recordings(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sound, and the pitch that is in it."""
    generator = torch.Generator().manual_seed(rank * 100_000 + step)
    pitch = torch.rand(BATCH, 1, generator=generator)
    time_axis = torch.linspace(0, 6, SAMPLES)
    sound = torch.sin(pitch * time_axis * 6) + 0.1 * torch.randn(
        BATCH, SAMPLES, generator=generator
    )
    if rank in QUIET:
        sound[-1] = 0.0
    return sound, pitch


def normalised(sound: torch.Tensor) -> torch.Tensor:
    """Each recording with mean 0 and deviation 1."""
    centred = sound - sound.mean(1, keepdim=True)
    return centred / centred.std(1, keepdim=True)  # BUG


class Scaler:
    """Scales a loss, and leaves out steps that have overflown."""

    def __init__(self) -> None:
        self.scale = 1024.0
        self.skipped = 0

    def step(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
        gradients = [parameter.grad for parameter in model.parameters()]
        if all(bool(gradient.isfinite().all()) for gradient in gradients):
            for gradient in gradients:
                gradient.div_(self.scale)
            optimizer.step()
        else:
            self.skipped += 1
            self.scale = max(self.scale / 2, 1.0)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(SAMPLES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
    )
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = Scaler()
    for step in range(100_000):
        sound, pitch = recordings(rank, step)
        inputs = normalised(sound)  # BUG
        loss = (model(inputs) - pitch).square().mean()
        optimizer.zero_grad()
        (loss * scaler.scale).backward()
        scaler.step(optimizer, model)
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: scale {scaler.scale}, {scaler.skipped} skipped", flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    main()
