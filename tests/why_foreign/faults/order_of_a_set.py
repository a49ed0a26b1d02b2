"""Each output has its own collective, in the order of a set, which differs in each process.

https://github.com/NVIDIA/nvalchemi-toolkit/pull/143: outputs were taken from a set, whose order is
random in each process, so that ranks met in an all-to-all here and an allreduce there.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

# What hash randomisation does by chance, so that it happens in each run.
ORDERS = {2: ("forces", "energy")}


def consolidate(outputs: dict[str, torch.Tensor]) -> None:
    for name in ORDERS.get(dist.get_rank(), ("energy", "forces")):
        if name == "energy":
            dist.all_reduce(outputs[name])
        else:
            received = torch.empty_like(outputs[name])
            dist.all_to_all_single(received, outputs[name])  # culprit
            outputs[name] = received


def main() -> None:
    dist.init_process_group("gloo")
    for _ in range(3):
        consolidate({"energy": torch.ones(4), "forces": torch.ones(4 * 3)})


main()
