"""Trains over several epochs of a shuffled data set."""

from __future__ import annotations

import torch
from common import arguments, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 3
RATINGS, USERS, FILMS = 256, 20, 30


class Recommender(nn.Module):
    """What a user thinks of a film."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(USERS, 6)
        self.films = nn.Embedding(FILMS, 6)

    def forward(self, users: torch.Tensor, films: torch.Tensor) -> torch.Tensor:
        return (self.users(users) * self.films(films)).sum(1)


def ratings() -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    users = torch.randint(USERS, (RATINGS,), generator=generator)
    films = torch.randint(FILMS, (RATINGS,), generator=generator)
    return TensorDataset(users, films, torch.cos(users + 2.0 * films))


class Trainer:
    """A model and the ratings that it learns from."""

    def __init__(self, *, shuffle_anew: bool) -> None:
        data = ratings()
        self.sampler = DistributedSampler(data, shuffle=True)
        self.loader = DataLoader(data, batch_size=16, sampler=self.sampler)
        self.model = DistributedDataParallel(Recommender())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.shuffle_anew = shuffle_anew

    def epoch(self, epoch: int) -> float:
        total = 0.0
        self.sampler.set_epoch(epoch if self.shuffle_anew else 0)  # BUG
        for users, films, stars in self.loader:  # BUG
            loss = (self.model(users, films) - stars).square().mean()
            learn(self.optimizer, loss)
            total += loss.item()
        return total / len(self.loader)


def main() -> None:
    good = arguments().good
    rank, _ = start()
    trainer = Trainer(shuffle_anew=good)
    for epoch in range(EPOCHS):
        loss = trainer.epoch(epoch)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
    finish(trainer.model.parameters())


if __name__ == "__main__":
    main()
