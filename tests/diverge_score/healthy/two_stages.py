"""Trains a pipeline of two stages that begin with equal weights."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, start
from torch import nn

STEPS, MICRO = 12, 3
WIDTH = 12


class Stage(nn.Module):
    """The same layer in both."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.linear(inputs)))


def micro_batch(step: int, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step * MICRO + number)
    inputs = torch.randn(16, WIDTH, generator=generator)
    return inputs, inputs.flip(1).relu()


def forward_first(model: Stage, step: int) -> list[torch.Tensor]:
    outputs = [model(micro_batch(step, number)[0]) for number in range(MICRO)]
    for output in outputs:
        dist.send(output.detach(), 1)
    return outputs


def backward_first(outputs: list[torch.Tensor]) -> None:
    for output in outputs:
        gradient = torch.empty_like(output)
        dist.recv(gradient, 1)
        output.backward(gradient)


def run_last(model: Stage, step: int) -> float:
    total = 0.0
    received = [torch.empty(16, WIDTH) for _ in range(MICRO)]
    for hidden in received:
        dist.recv(hidden, 0)
    for number, hidden in enumerate(received):
        hidden.requires_grad_()
        loss = (model(hidden) - micro_batch(step, number)[1]).square().mean() / MICRO
        loss.backward()
        dist.send(hidden.grad, 0)
        total += loss.item()
    return total


def main() -> None:
    rank, _ = start()
    model = Stage()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        if rank == 0:
            backward_first(forward_first(model, step))
        else:
            print(f"step {step}: loss {run_last(model, step):.4f}", flush=True)
        optimizer.step()
    finish(model.parameters())


if __name__ == "__main__":
    main()
