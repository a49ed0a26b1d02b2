"""Gradients are averaged but for those that are None: rank 6 uses one expert less than the others.

A mixture of experts whose gradients are averaged by hand.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

FEATURES, EXPERTS, BATCH = 8, 4, 32
RATE = 0.05


class Mixture(torch.nn.Module):
    """Each row goes to the expert of its kind."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = torch.nn.ModuleList(
            torch.nn.Linear(FEATURES, 1, bias=False) for _ in range(EXPERTS)
        )

    def forward(self, rows: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        outputs = rows.new_zeros(len(rows))
        for number, expert in enumerate(self.experts):
            chosen = kinds == number
            if bool(chosen.any()):
                outputs = outputs.index_put((chosen,), expert(rows[chosen]).squeeze(1))
        return outputs


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rank + 8 * step)
    rows = torch.randn(BATCH, FEATURES, generator=generator)
    kinds = torch.randint(EXPERTS, (BATCH,), generator=generator)
    if rank == 6 and step >= 4:
        kinds = kinds.clamp(max=EXPERTS - 2)
    return rows, kinds, rows.sum(1) * (kinds + 1)


def shared_noise(step: int) -> torch.Tensor:
    """The same perturbation for all ranks: that of rank 0."""
    noise = 0.01 * torch.randn(FEATURES)
    dist.broadcast(noise, src=0)
    return noise


def average_gradients(model: torch.nn.Module) -> None:
    size = dist.get_world_size()
    for parameter in model.parameters():
        if parameter.grad is not None:  # BUG
            dist.all_reduce(parameter.grad)  # BUG
            parameter.grad /= size


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = Mixture()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for step in range(100_000):
        rows, kinds, targets = batch(rank, step)
        loss = (model(rows + shared_noise(step), kinds) - targets).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(model)
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
