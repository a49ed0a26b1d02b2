"""Trains on nodes of two ranks: gradients are added up in a node, then across nodes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import Classifier, blobs, finish, loss_of, say, start
from torch import nn

STEPS = 12
LOCAL = 2


class Topology:
    """The groups that this rank is in."""

    def __init__(self, rank: int, world: int) -> None:
        nodes = [dist.new_group([first, first + 1]) for first in range(0, world, LOCAL)]
        across = [dist.new_group([*range(local, world, LOCAL)]) for local in range(LOCAL)]
        self.node = nodes[rank // LOCAL]
        self.across = across[rank % LOCAL]
        self.world = world


def average_gradients(model: nn.Module, topology: Topology) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=topology.node)
        dist.all_reduce(parameter.grad, group=topology.node)  # BUG
        parameter.grad /= topology.world


def train_step(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    loss = loss_of(model, blobs(rank, step))
    loss.backward()
    return loss.detach()


def main() -> None:
    rank, world = start()
    topology = Topology(rank, world)
    model = Classifier(24)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = train_step(model, rank, step)
        average_gradients(model, topology)
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
