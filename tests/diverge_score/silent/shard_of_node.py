"""Trains on shards of a data set, on two nodes of two ranks."""

from __future__ import annotations

import torch
from common import Classifier, arguments, blobs, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

EPOCHS = 2
LOCAL = 2
Sample = tuple[torch.Tensor, torch.Tensor]


class Points(Dataset[Sample]):
    """All samples; a rank reads its shard of them."""

    def __init__(self) -> None:
        self.inputs, self.labels = blobs(0, 0, size=512)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        return self.inputs[index], self.labels[index]


def make_loader(shard: int, shards: int) -> DataLoader[Sample]:
    points = Points()
    sampler = DistributedSampler(points, shards, shard, shuffle=True, seed=5)
    return DataLoader(points, batch_size=16, sampler=sampler)


def main() -> None:
    good = arguments().good
    rank, world = start()
    loader = make_loader(rank if good else rank % LOCAL, world)  # BUG
    model = DistributedDataParallel(Classifier(24))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(EPOCHS):
        loader.sampler.set_epoch(epoch)
        total = 0.0
        for inputs, labels in loader:  # BUG
            loss = nn.functional.cross_entropy(model(inputs), labels)
            learn(optimizer, loss)
            total += loss.item()
        if rank == 0:
            print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
