"""The ranks of `tests.bench.comm`: for each line of rank 0's stdin, CPU seconds of a step.

A line has a mode, what is done (`ddp`, `large`, `small`) and how often. With the mode `plain`
nothing of ours is loaded, with `taken` rank 0 is taken home, with `beside` rank 1, to the file that
is argument 1.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.append(str(Path(__file__).parents[2]))
dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
layers: list[nn.Module] = [nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(1024, 1024)))  # 3.2 M parameters
optimizer = torch.optim.AdamW(model.parameters())
batch, large_batch = torch.randn(64, 1024), torch.randn(512, 1024)
small = torch.zeros(4)
TAKEN = {"taken": 0, "beside": 1}
store: Any = dist.distributed_c10d._get_default_store()


def ddp(given: torch.Tensor = batch) -> None:
    """Train one step."""
    model(given).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def large() -> None:
    """Train one step of more samples."""
    ddp(large_batch)


def reduce() -> None:
    """Make one call of 16 bytes."""
    dist.all_reduce(small)


def begin(mode: str) -> None:
    """Have the watch look at this; `finite`: as for who stops at values that are not."""
    if mode == "plain":
        return
    switch: Any = import_module("dap_mux.rank.comm.switch")
    if mode in TAKEN:
        switch.begin("take" if dist.get_rank() == TAKEN[mode] else "off", print)
        if switch.watch() is not None:
            taking: Any = import_module("dap_mux.rank.take.recorder")
            taker = taking.Recorder(sys.argv[1], 0, 2, {}, taking.NO_LIMIT, lambda _: None)
            taker.follow(switch.watch())
        return
    switch.begin(mode, print)
    if mode == "finite" and not switch.watch().sending:
        switch.watch().sending.append(lambda _, __: None)


ACTS = {"ddp": ddp, "large": large, "small": reduce}
number = 0
while True:
    if dist.get_rank() == 0:
        store.set(f"line {number}", sys.stdin.readline().strip() or "end")
    line = store.get(f"line {number}").decode()
    if line == "end":
        break
    mode, what, count = line.split()
    begin(mode)
    ACTS[what]()  # a watch looks for the names of parameters once
    dist.barrier()
    start = time.process_time()
    for _ in range(int(count)):
        ACTS[what]()
    if dist.get_rank() == 0:
        print((time.process_time() - start) / int(count), flush=True)
    number += 1
dist.barrier()
dist.destroy_process_group()
