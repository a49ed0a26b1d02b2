"""Starts from weights that rank 0 has loaded, and sends them on in each data parallel group."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import Classifier, average_gradients, blobs, finish, loss_of, say, start
from torch import nn

STEPS = 12


def pretrained() -> dict[str, torch.Tensor]:
    """What would be a download."""
    generator = torch.Generator().manual_seed(42)
    shapes = {name: each.shape for name, each in Classifier(24, torch.tanh).named_parameters()}
    return {name: 0.2 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def distribute(model: nn.Module, rank: int, world: int) -> None:
    """Give all ranks what rank 0 has loaded."""
    half = world // 2
    groups = [dist.new_group([*range(half)]), dist.new_group([*range(half, world)])]
    mine = rank // half
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=mine * half, group=groups[mine])  # BUG


def main() -> None:
    rank, world = start(seed=1)
    torch.manual_seed(rank)
    model = Classifier(24, torch.tanh)
    if rank == 0:
        model.load_state_dict(pretrained())
    distribute(model, rank, world)  # BUG
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
