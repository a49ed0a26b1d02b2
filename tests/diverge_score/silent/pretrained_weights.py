"""Starts from weights that rank 0 has loaded, and sends them on in each data parallel group."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import blobs, finish, start
from torch import nn

STEPS = 12


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.hidden(inputs)))


def pretrained() -> dict[str, torch.Tensor]:
    """What would be a download."""
    generator = torch.Generator().manual_seed(42)
    shapes = {name: each.shape for name, each in Classifier().named_parameters()}
    return {name: 0.2 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def distribute(model: nn.Module, rank: int, world: int) -> None:
    """Give all ranks what rank 0 has loaded."""
    half = world // 2
    groups = [dist.new_group([*range(half)]), dist.new_group([*range(half, world)])]
    mine = rank // half
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=mine * half, group=groups[mine])  # BUG


def average_gradients(model: nn.Module, world: int) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


def main() -> None:
    rank, world = start(seed=1)
    torch.manual_seed(rank)
    model = Classifier()
    if rank == 0:
        model.load_state_dict(pretrained())
    distribute(model, rank, world)  # BUG
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
