"""The first process tokenizes the whole dataset, the others wait until it has.

https://github.com/huggingface/transformers/issues/17106: "dataset map tokenization" in
main_process_first takes longer than the others are allowed to wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist


@contextmanager
def main_process_first(first: int) -> Iterator[None]:
    if dist.get_rank() != first:
        dist.barrier()
    yield
    if dist.get_rank() == first:
        dist.barrier()


def tokenize(documents: int) -> int:
    """Count pairs of letters, in plain Python."""
    pairs = 0
    for document in range(documents):
        text = str(document) * 50
        pairs += len({text[i : i + 2] for i in range(len(text))})  # culprit
    return pairs


def main() -> None:
    dist.init_process_group("gloo")
    with main_process_first(2):
        cached = dist.get_rank() != 2
        tokenize(1 if cached else 50_000_000)  # culprit: call


main()
