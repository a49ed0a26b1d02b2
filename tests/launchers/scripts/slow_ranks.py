"""Trains in two ranks; the last one loads slowly, or leaves the loop early, until a file is there.

Then it says whether anything has been left in the rank: `left [kernels, callbacks]`.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WHAT, GO_ON = sys.argv[1], Path(sys.argv[2])
ROUNDS = 30


def load(rank: int) -> torch.Tensor:
    """Return a batch."""
    time.sleep(0.1 if WHAT == "loads" and rank else 0.005)
    return torch.ones(8, 16)


def goes_on(rank: int, step: int) -> bool:
    """Whether there is one step more."""
    if WHAT == "leaves":
        return rank == 0 or step < ROUNDS
    go_on = torch.tensor([GO_ON.exists()])
    dist.broadcast(go_on, 0)
    return not go_on.item()


def train(rank: int, model: torch.nn.Module) -> None:
    """Train until told not to."""
    step = 0
    while goes_on(rank, step):
        model(load(rank)).square().mean().backward()
        step += 1


def main() -> None:
    """Train."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    train(rank, DistributedDataParallel(torch.nn.Linear(16, 4)))
    if WHAT == "leaves":
        dist.barrier()
    switch = sys.modules.get("dap_mux.rank.comm.switch")
    kept = [one for one in gc.callbacks if "dap_mux" in getattr(one, "__module__", "")]
    print(f"left {json.dumps([switch is not None and switch.watch() is not None, len(kept)])}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
