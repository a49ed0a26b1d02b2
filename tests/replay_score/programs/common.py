"""How these programs begin, and what they say of each step: bit by bit what a rank has learnt."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn

SEED: Final = int(os.environ.get("SCORE_SEED", "0"))
WIDTH: Final = 8
CLASSES: Final = 4
Batch = tuple[torch.Tensor, torch.Tensor]


def start() -> tuple[int, int]:
    """Join the job; return this rank and how many there are."""
    dist.init_process_group("gloo")
    torch.manual_seed(SEED)
    return dist.get_rank(), dist.get_world_size()


def net(*middle: nn.Module) -> nn.Sequential:
    """Return a small classifier."""
    return nn.Sequential(nn.Linear(WIDTH, 16), *middle, nn.ReLU(), nn.Linear(16, CLASSES))


def batch(rank: int, step: int, size: int = 16) -> Batch:
    """Return what a rank learns from in a step."""
    generator = torch.Generator().manual_seed(SEED * 10_000 + step * 100 + rank)
    labels = torch.randint(CLASSES, (size,), generator=generator)
    points = torch.randn(size, WIDTH, generator=generator) + labels[:, None]
    return points, labels


def tell(kind: str, step: int, loss: torch.Tensor, model: nn.Module) -> None:
    """Print a step's loss, the norm of its gradients, and a digest of them and of all values."""
    given = [local(each.grad) for each in model.parameters() if each.grad is not None]
    norm = sum(float(each.double().square().sum()) for each in given) ** 0.5
    values = [*given, *map(local, model.parameters()), *map(local, model.buffers())]
    say(kind, dist.get_rank(), step, float(loss.detach()), norm, map(content, values))


def say(kind: str, rank: int, step: int, loss: float, norm: float, values: Iterable[bytes]) -> None:
    """Print a line at once, so that no other rank's is within."""
    digest = blake2b(b"".join(values), digest_size=16).hexdigest()
    sys.stdout.write(f"{kind} {rank} {step} {loss.hex()} {norm.hex()} {digest}\n")
    sys.stdout.flush()


def local(tensor: Any) -> Any:
    """Return what this rank has of a tensor."""
    return (tensor.to_local() if hasattr(tensor, "to_local") else tensor).detach()


def content(tensor: Any) -> bytes:
    """Return a tensor's bytes."""
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())


def run(*functions: Callable[[str, int, int], None]) -> None:
    """Run the kinds that the command line names; each is called what its function is."""
    kinds = {each.__name__: each for each in functions}
    rank, world = start()
    for kind in sys.argv[1:]:
        torch.manual_seed(SEED + 1)
        kinds[kind](kind, rank, world)
        dist.barrier()
