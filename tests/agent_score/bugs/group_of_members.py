"""Ranks 2 and 5 make their group alone, but `new_group` has to be called on all ranks.

Trains, and from some step on lets two ranks compare what they predict for the same inputs.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES, CLASSES, BATCH = 10, 3, 32
AUDITORS = (2, 5)
AUDIT_FROM = 5


class Classifier(torch.nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(FEATURES, 20)
        self.head = torch.nn.Linear(20, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


class Audit:
    """Compares the predictions of two ranks."""

    def __init__(self) -> None:
        self.group: dist.ProcessGroup | None = None
        self.inputs = torch.randn(64, FEATURES, generator=torch.Generator().manual_seed(3))

    def begin(self) -> None:
        self.group = dist.new_group(AUDITORS)  # BUG

    @torch.no_grad()
    def differences(self, model: torch.nn.Module) -> int:
        mine = model(self.inputs).argmax(1)
        both = [torch.empty_like(mine) for _ in AUDITORS]
        dist.all_gather(both, mine, group=self.group)
        return int((both[0] != both[1]).sum())


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(BATCH, FEATURES, generator=generator)
    return inputs, inputs[:, :CLASSES].argmax(1)


def train_step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int, step: int
) -> float:
    inputs, labels = batch(rank, step)
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    classifier = Classifier()
    model = DistributedDataParallel(classifier)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    audit = Audit()
    for step in range(100_000):
        loss = train_step(model, optimizer, rank, step)
        if rank in AUDITORS and step == AUDIT_FROM:  # BUG
            audit.begin()  # BUG
        if audit.group is not None and (found := audit.differences(classifier)):
            print(f"step {step}: rank {rank} predicts {found} inputs otherwise", flush=True)
        if rank == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
