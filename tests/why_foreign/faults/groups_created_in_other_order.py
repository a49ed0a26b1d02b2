"""One rank creates two groups in the opposite order.

https://github.com/facebookresearch/param/pull/183: new_group requires that groups are created in
the same order in all processes.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

GROUPS = {"tensor": [0, 1, 2], "pipeline": [1, 2, 3]}
# What the order of a configuration file does on this rank.
ORDERS = {2: ("pipeline", "tensor")}


def main() -> None:
    dist.init_process_group("gloo")
    groups = {}
    for name in ORDERS.get(dist.get_rank(), ("tensor", "pipeline")):
        groups[name] = dist.new_group(GROUPS[name])  # culprit
    for name, members in GROUPS.items():
        if dist.get_rank() in members:
            dist.all_reduce(torch.ones(4), group=groups[name])
    dist.barrier()


main()
