"""One rank's sequences have very many short documents, and each is masked on its own.

https://github.com/NVIDIA/Megatron-LM/pull/1155: where a long sequence consists of short documents,
the attention mask is written once for each, and the data take very long to load.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

LENGTH = 16_384


def attention_mask(ends: list[int]) -> torch.Tensor:
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool)
    for end in ends:
        mask[end + 1 :, : end + 1] = False  # culprit
    return mask


def batch(documents: int) -> int:
    ends = list(range(0, LENGTH, LENGTH // documents))
    return sum(int(attention_mask(ends)[0, 0]) for _ in range(8))


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    if dist.get_rank() == 2:
        batch(documents=LENGTH // 2)  # culprit: call
    dist.all_reduce(torch.ones(1))


main()
