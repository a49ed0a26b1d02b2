"""Trains, and keeps a moving average of the weights, on all ranks alike."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, loss_of, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = 20


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


@torch.no_grad()
def accuracy(model: nn.Module, rank: int) -> float:
    inputs, labels = blobs(rank, 10_000, size=128)
    return (model(inputs).argmax(1) == labels).float().mean().item()


def main() -> None:
    rank, _ = start()
    classifier = Classifier()
    model = DistributedDataParallel(classifier)
    average = AveragedModel(classifier, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        learn(optimizer, loss)
        average.update_parameters(classifier)
    print(f"rank {rank}: {accuracy(average, rank):.2f}", flush=True)
    finish([*model.parameters(), *average.parameters()])


if __name__ == "__main__":
    main()
