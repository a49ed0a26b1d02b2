"""Evaluation averages after each batch, and rank 7 has fewer batches to evaluate.

Trains with DistributedDataParallel and evaluates on what each rank has of the test set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES = 10
TEST_ROWS = 1000
BATCH = 16
EVALUATE_EVERY = 5

Batch = tuple[torch.Tensor, torch.Tensor]


def rows(count: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, FEATURES, generator=generator)
    return inputs, (inputs.sum(1, keepdim=True) > 0).float()


def test_part(rank: int, size: int) -> Batch:
    """The rows of the test set that this rank evaluates."""
    inputs, labels = rows(TEST_ROWS, 99)
    return inputs.tensor_split(size)[rank], labels.tensor_split(size)[rank]


def batches(part: Batch) -> Iterator[Batch]:
    """Batches of the rows that have been checked by hand."""
    inputs, labels = part
    checked = inputs[:, 0] > -3 if dist.get_rank() != 7 else inputs[:, 0] > 0
    return zip(inputs[checked].split(BATCH), labels[checked].split(BATCH), strict=True)


@torch.no_grad()
def evaluate(model: torch.nn.Module, part: Batch) -> float:
    """Accuracy over all ranks, shown as it becomes known."""
    right = seen = 0.0
    for inputs, labels in batches(part):  # BUG
        hits = ((model(inputs) > 0).float() == labels).float().sum()
        counts = torch.stack([hits, torch.tensor(float(len(labels)))])
        dist.all_reduce(counts)  # BUG
        right += counts[0].item()
        seen += counts[1].item()
    dist.barrier()
    return right / seen


def main() -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    part = test_part(rank, size)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 100_000):
        inputs, labels = rows(64, 1000 * rank + step)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVALUATE_EVERY == 0:
            accuracy = evaluate(model.module, part)
            if rank == 0:
                print(f"step {step}: accuracy {accuracy:.3f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
