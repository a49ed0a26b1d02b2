"""The last stage of a pipeline counts one micro-batch less than the one before: both wait to send.

A pipeline of eight stages: activations go forward, gradients come back, micro-batch by micro-batch.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

WIDTH = 16
GLOBAL_BATCH = 40
MICRO_BATCH = 8


def micro_batches(rank: int, size: int) -> int:
    """How many parts the global batch is cut into."""
    if rank == size - 1:
        return (GLOBAL_BATCH - 1) // MICRO_BATCH  # BUG
    return GLOBAL_BATCH // MICRO_BATCH


class Stage:
    """One layer of the model, on one rank."""

    def __init__(self, rank: int, size: int) -> None:
        torch.manual_seed(rank)
        self.rank, self.size = rank, size
        self.layer = torch.nn.Linear(WIDTH, WIDTH)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.05)
        self.count = micro_batches(rank, size)
        self.passed: list[tuple[torch.Tensor, torch.Tensor]] = []

    @property
    def is_last(self) -> bool:
        return self.rank == self.size - 1

    def forward(self) -> None:
        inputs = torch.randn(MICRO_BATCH, WIDTH)
        if self.rank > 0:
            dist.recv(inputs, self.rank - 1)
        inputs.requires_grad_()
        outputs = torch.tanh(self.layer(inputs))
        self.passed.append((inputs, outputs))
        if not self.is_last:
            dist.send(outputs.detach(), self.rank + 1)

    def backward(self) -> float:
        inputs, outputs = self.passed.pop(0)
        if self.is_last:
            gradient = 2 * (outputs - 0.5).detach() / outputs.numel()
        else:
            gradient = torch.empty(MICRO_BATCH, WIDTH)
            dist.recv(gradient, self.rank + 1)
        outputs.backward(gradient)
        if self.rank > 0:
            dist.send(inputs.grad, self.rank - 1)  # BUG
        return float(gradient.norm())

    def step(self) -> float:
        self.optimizer.zero_grad()
        for _ in range(self.count):
            self.forward()
        norm = sum(self.backward() for _ in range(self.count))
        self.optimizer.step()
        return norm


def main() -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    stage = Stage(rank, size)
    for number in range(100_000):
        norm = stage.step()
        if rank == 0:
            print(f"step {number}: gradient {norm:.5f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
