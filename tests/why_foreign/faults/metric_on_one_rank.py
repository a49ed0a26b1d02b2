"""One rank logs a metric that the others do not have, and each metric is reduced.

https://github.com/Lightning-AI/pytorch-lightning/issues/19106: a deadlock in log_dict where its
keys differ across ranks.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def log_dict(metrics: dict[str, float]) -> None:
    for name in sorted(metrics):
        value = torch.tensor([metrics[name]])
        dist.all_reduce(value)  # culprit
        metrics[name] = value.item() / dist.get_world_size()


def main() -> None:
    dist.init_process_group("gloo")
    for epoch in range(4):
        metrics = {"accuracy": 0.9, "loss": 0.1}
        if dist.get_rank() == 2 and epoch == 2:
            metrics["rare_class_recall"] = 0.5
        log_dict(metrics)
        dist.barrier()


main()
