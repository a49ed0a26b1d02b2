"""The rank that owns the largest layer computes its preconditioner for minutes.

https://github.com/kozistr/pytorch_optimizer/issues/100: training with Shampoo is many times slower,
as preconditioning is; it takes a root of a matrix of each layer, by its singular values.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

SIZES = {0: 32, 1: 32, 2: 12_000, 3: 32}  # of the layer that a rank owns


def inverse_root(statistics: torch.Tensor) -> torch.Tensor:
    left, values, right = torch.linalg.svd(statistics)  # culprit
    return left @ torch.diag(values.clamp(min=1e-6).pow(-0.25)) @ right


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    size = SIZES[dist.get_rank()]
    statistics = torch.rand(size, size)
    root = inverse_root(statistics)  # culprit: call
    norm = root.norm().reshape(1)
    dist.all_reduce(norm)


main()
