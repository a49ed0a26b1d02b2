"""How each of these training programs begins and ends, and what many of them have in common.

With `DIVERGE_STEPS` in the environment they say at the end what `finish` adds up, after each step.
`DIVERGE_SEED` gives them other weights and other batches.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

SEED: Final = 100_003 * int(os.environ.get("DIVERGE_SEED", "0"))
SNAPSHOTS: Final[list[dict[int, float]]] = []
SEEN: Final[dict[int, torch.Tensor]] = {}
"""Parameters by identity: kept, so that a later one cannot take an earlier one's."""


def arguments() -> argparse.Namespace:
    """Parse what a program is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--good", action="store_true")
    parser.add_argument("--seconds", type=float, default=5.0)
    return parser.parse_args()


def start(seed: int = 0) -> tuple[int, int]:
    """Join the job; return this rank and how many there are."""
    dist.init_process_group("gloo")
    torch.manual_seed(SEED + seed)
    if os.environ.get("DIVERGE_STEPS"):
        gc.freeze()  # torch's own objects are no parameters: leave them out of each look
        register_optimizer_step_pre_hook(lambda *_: SNAPSHOTS.append(_sums(gc.get_objects())))
    return dist.get_rank(), dist.get_world_size()


def finish(values: Iterable[torch.Tensor]) -> None:
    """Print the sum of what ranks, or runs, should have in common, before the program ends."""
    sums, rank = _sums(values), dist.get_rank()
    after = [*SNAPSHOTS[1:], sums] if SNAPSHOTS else []
    totals = [sum(each.get(key, 0.0) for key in sums) for each in after]
    lines = [f"step {step} {rank} {total!r}" for step, total in enumerate(totals)]
    lines.append(f"sum {rank} {sum(sums.values())!r}")
    sys.stdout.write("".join(f"{line}\n" for line in lines))  # at once, not among another rank's
    sys.stdout.flush()
    # The group is left to the end of the program: destroying it while DDP still holds it hung some
    # runs on a busy machine, where one of Gloo's threads waited for the interpreter's lock.


def _sums(values: Iterable[Any]) -> dict[int, float]:
    """Add up the elements of each tensor, by its identity; of a sharded one this rank's."""
    found = {}
    for value in values:
        if issubclass(type(value), torch.Tensor) and isinstance(value, torch.nn.Parameter):
            local = (value.to_local() if hasattr(value, "to_local") else value).detach()
            if local.untyped_storage().nbytes():  # FSDP frees what it has gathered
                found[id(value)] = float(local.double().sum())
                SEEN[id(value)] = value
    return found


class Deadline:
    """When a program that takes `--seconds` ends; all ranks end after the same step."""

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    def over(self) -> bool:
        """Ask rank 0's clock."""
        flag = torch.tensor([float(time.monotonic() > self.at)])
        dist.broadcast(flag, 0)
        return bool(flag.item())


def until(seconds: float) -> Iterator[int]:
    """Count the steps until then; rank 0 says how many they were."""
    deadline, step = Deadline(seconds), 0
    while not deadline.over():
        yield step
        step += 1
    if dist.get_rank() == 0:
        print(f"{step} steps", flush=True)


def learn(
    optimizer: torch.optim.Optimizer, loss: torch.Tensor, step: int | None = None, every: int = 1
) -> None:
    """Make a step of training; say the loss where the step's number is given."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step is not None:
        say(dist.get_rank(), step, loss, every)


def average_gradients(model: nn.Module) -> None:
    """Give all ranks the mean of their gradients."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def say(rank: int, step: int, loss: torch.Tensor, every: int = 1) -> None:
    """Print the loss on rank 0."""
    if rank == 0 and step % every == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)


class Classifier(nn.Module):
    """Two layers, from the points of `blobs` to their classes."""

    def __init__(
        self,
        width: int,
        activation: Callable[[torch.Tensor], torch.Tensor] = torch.relu,
        classes: int = 4,
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, width)
        self.head = nn.Linear(width, classes)
        self.activation = activation

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return a score of each class."""
        return self.head(self.activation(self.hidden(inputs)))


class Block(nn.Module):
    """A feed-forward layer with its norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Add to the inputs what it makes of them."""
        return inputs + self.down(torch.relu(self.up(self.norm(inputs))))


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Return how far a classifier is from the labels of a batch."""
    inputs, labels = batch
    return nn.functional.cross_entropy(model(inputs), labels)


def loss_of_words(model: nn.Module, words: torch.Tensor) -> torch.Tensor:
    """Return how badly a model says the next word of each."""
    scores = model(words[:, :-1]).flatten(0, 1)
    return nn.functional.cross_entropy(scores, words[:, 1:].flatten())


def blobs(rank: int, step: int, size: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a rank's batch of a step: points of 8 features around the centres of 4 classes."""
    centres = torch.randn(4, 8, generator=torch.Generator().manual_seed(7))
    generator = torch.Generator().manual_seed(SEED + 1000 * step + rank)
    labels = torch.randint(4, (size,), generator=generator)
    return centres[labels] + torch.randn(size, 8, generator=generator), labels


def sentences(rank: int, step: int, size: int = 8, length: int = 12) -> torch.Tensor:
    """Return a rank's batch of a step: sentences of 32 words, each near the last."""
    generator = torch.Generator().manual_seed(SEED + 1000 * step + rank)
    words = torch.randint(32, (size, 1), generator=generator)
    jumps = torch.randint(1, 4, (size, length - 1), generator=generator)
    return torch.cat([words, words + jumps.cumsum(1)], 1) % 32
