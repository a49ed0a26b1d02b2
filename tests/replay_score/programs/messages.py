"""Ranks that learn from each other's messages, in several ways: `messages.py KIND...`."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from common import WIDTH, batch, net, run, tell
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

STEPS = 10


def learn(kind: str, step: int, model: nn.Module, given: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Make one step of plain descent."""
    loss = nn.functional.cross_entropy(model(given[0]), given[1])
    loss.backward()
    with torch.no_grad():
        for each in model.parameters():
            each.sub_(0.1 * each.grad)
    tell(kind, step, loss, model)
    model.zero_grad()


def objects(kind: str, rank: int, world: int) -> None:
    """What ranks say to each other as objects decides what they learn from."""
    model = net()
    for step in range(STEPS):
        said: list[Any] = [None] * world
        dist.all_gather_object(said, {"rank": rank, "shift": (rank + step) % world, "at": {rank}})
        plan: list[Any] = [said[::-1] if rank == 0 else None]
        dist.broadcast_object_list(plan, 0)
        mine: list[Any] = [None]
        dist.scatter_object_list(mine, plan[0] if rank == 1 else None, 1)
        gathered: list[Any] = [None] * world
        dist.gather_object(
            (rank, mine[0]["shift"]), gathered if rank == world - 1 else None, world - 1
        )
        points, labels = batch(mine[0]["rank"], step)
        noise = sum(each[1] for each in gathered) if rank == world - 1 else mine[0]["shift"]
        learn(kind, step, model, (points + 0.1 * noise, labels))


def send_recv(kind: str, rank: int, world: int) -> None:
    """Half of the ranks send first; whoever comes, his numbers are added, in a fixed order."""
    model = net()
    for step in range(STEPS):
        points, labels = batch(rank, step)
        received = torch.empty_like(points)
        if rank % 2 == 0:
            dist.send(points, (rank + 1) % world)
            dist.recv(received, (rank - 1) % world)
        else:
            dist.recv(received, (rank - 1) % world)
            dist.send(points, (rank + 1) % world)
        work = dist.isend(points[:2], (rank + 2) % world, tag=5)
        some = torch.empty_like(points[:2])
        other = dist.recv(some, tag=5)
        work.wait()
        points = points + 0.1 * received
        points[:2] += some * (other + 1)
        learn(kind, step, model, (points, labels))


def batched(kind: str, rank: int, world: int) -> None:
    """A halo from both neighbours, by `batch_isend_irecv`."""
    model = net()
    left, right = (rank - 1) % world, (rank + 1) % world
    for step in range(STEPS):
        points, labels = batch(rank, step)
        halo = torch.empty(2, *points.shape)
        first, last = points.flip(0).contiguous(), points * 2
        operations = [
            dist.P2POp(dist.isend, first, left, tag=1),
            dist.P2POp(dist.isend, last, right, tag=2),
            dist.P2POp(dist.irecv, halo[0], left, tag=2),
            dist.P2POp(dist.irecv, halo[1], right, tag=1),
        ]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        learn(kind, step, model, (points + halo.mean(0), labels))


def groups(kind: str, rank: int, world: int) -> None:
    """Groups with this rank and without it, that overlap."""
    made = [dist.new_group(ranks) for ranks in ([0, 1], [1, 2, 3], [0, 3], [2])]
    mine = [each for each in made if dist.get_rank(each) >= 0]
    model = net()
    for step in range(STEPS):
        points, labels = batch(rank, step)
        for number, group in enumerate(mine):
            dist.all_reduce(
                points, op=dist.ReduceOp.MAX if number else dist.ReduceOp.SUM, group=group
            )
            parts = [torch.empty_like(points[0]) for _ in range(dist.get_world_size(group))]
            dist.all_gather(parts, points[number].clone(), group=group)
            points[step % 16] += torch.stack(parts).mean(0)
        dist.broadcast(labels, 3)
        learn(kind, step, model, (points, labels))


def pipeline(kind: str, rank: int, world: int) -> None:
    """A stage a rank, by torch's own schedule."""
    last = rank == world - 1
    module = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Identity() if last else nn.Tanh())
    stage = PipelineStage(module, rank, world, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=nn.functional.cross_entropy)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(STEPS):
        points, labels = batch(0, step)
        losses: list[torch.Tensor] = []
        if rank == 0:
            schedule.step(points)
        else:
            schedule.step(target=labels if last else None, losses=losses if last else None)
        optimizer.step()
        tell(kind, step, torch.stack(losses).mean() if losses else torch.zeros(()), module)
        optimizer.zero_grad()


KINDS = objects, send_recv, batched, groups, pipeline
if __name__ == "__main__":
    run(*KINDS)
