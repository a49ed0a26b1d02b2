"""An adapter is put into the model after DDP has wrapped it, so its gradients are not averaged.

Fine-tunes a frozen network by a small adapter.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES, WIDTH, BATCH = 8, 24, 32


class Adapter(torch.nn.Module):
    """A narrow detour around a layer."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.down = torch.nn.Linear(WIDTH, 4, bias=False)
        self.up = torch.nn.Linear(4, WIDTH, bias=False)
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.layer(hidden) + self.up(self.down(hidden))


class Network(torch.nn.Module):
    """Three layers; the last one is always trained."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(FEATURES, WIDTH).requires_grad_(False)
        self.middle = torch.nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(inputs))
        return self.head(torch.relu(self.middle(hidden))).squeeze(1)


def adapt(network: torch.nn.Module) -> None:
    """Put adapters where the recipe wants them."""
    network.middle = Adapter(network.middle)  # BUG


def samples(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step * 8 + rank)
    inputs = torch.randn(BATCH, FEATURES, generator=generator)
    return inputs, inputs.square().sum(1) / FEATURES


def prepare() -> torch.nn.Module:
    torch.manual_seed(0)
    model = DistributedDataParallel(Network())  # BUG
    adapt(model.module)  # BUG
    return model


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = prepare()
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.01)
    for step in range(100_000):
        inputs, targets = samples(rank, step)
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        adapted = float(model.module.middle.up.weight.detach().norm())
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, adapted {adapted:.4f}", flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    main()
