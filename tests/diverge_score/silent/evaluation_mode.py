"""Trains with batch norms; rank 0 evaluates now and then, the others wait."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import arguments, blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, EVERY = 15, 5


class Classifier(nn.Module):
    """Two layers with a norm between."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.norm = nn.BatchNorm1d(24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.hidden(inputs))))


@torch.no_grad()
def evaluate(model: nn.Module, step: int, then_train: bool) -> float:
    """Return the accuracy on samples that are not trained on."""
    model.eval()
    inputs, labels = blobs(99, step, size=128)
    right = model(inputs).argmax(1) == labels
    model.train(then_train)  # BUG
    return right.float().mean().item()


def train_step(model: nn.Module, rank: int, step: int) -> float:
    inputs, labels = blobs(rank, step)
    loss = nn.functional.cross_entropy(model(inputs), labels)  # BUG
    model.zero_grad()
    loss.backward()
    return loss.item()


def main() -> None:
    good = arguments().good
    rank, _ = start()
    classifier = Classifier()
    model = DistributedDataParallel(classifier)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        loss = train_step(model, rank, step)
        optimizer.step()
        if (step + 1) % EVERY == 0:
            if rank == 0:
                found = evaluate(classifier, step, then_train=good)  # BUG
                print(f"step {step}: loss {loss:.4f}, accuracy {found:.2f}", flush=True)
            dist.barrier()
    finish(model.parameters())


if __name__ == "__main__":
    main()
