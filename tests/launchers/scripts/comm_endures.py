"""Two ranks of many small calls (`calls COUNT`) or of DDP's steps (`ddp COUNT`), under the record.

With COMM=off nothing of ours is loaded but the module that would record them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from comm_watch import comm, tell
from torch import nn
from torch.nn.parallel import DistributedDataParallel

UNWAITED = 8
PARTS = 20
memory: list[float] = []
began = time.monotonic()


def look(step: int, count: int) -> None:
    """Note the memory (MiB) now and then, and say how far it is."""
    if step % max(1, count // PARTS):
        return
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    memory.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
    kept = len(comm.record().kept) if comm.record() is not None else 0
    if dist.get_rank() == 0:
        tell("step", [step, f"{time.monotonic() - began:.0f} s", f"{memory[-1]:.0f} MiB", kept])


def reduce_often(group: Any, count: int, *, is_looked_at: bool) -> None:
    """Half of the calls are waited for at once, the others eight at a time."""
    kept, works = torch.ones(4), []
    for step in range(count):
        if step % 2:
            works.append(dist.all_reduce(torch.ones(4), group=group, async_op=True))
        else:
            dist.all_reduce(kept, op=dist.ReduceOp.MAX, group=group)
        if len(works) == UNWAITED or step == count - 1:
            for work in works:
                work.wait()
            works = []
        if is_looked_at:
            look(step, count)


def calls(count: int) -> list[str]:
    """Make calls in two threads, in a group each."""
    other = dist.new_group()
    options = {"is_looked_at": False}
    thread = threading.Thread(target=reduce_often, args=(other, count // 2), kwargs=options)
    thread.start()
    reduce_often(dist.group.WORLD, count // 2, is_looked_at=True)
    thread.join()
    return []


def ddp(count: int) -> list[str]:
    """Train with small buckets; return the weights, exactly."""
    torch.manual_seed(0)
    layers = [nn.Linear(32, 32), nn.BatchNorm1d(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    random = torch.Generator().manual_seed(dist.get_rank())
    for step in range(count):
        loss = model(torch.randn(8, 32, generator=random)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        look(step, count)
    return [float(each.double().sum()).hex() for each in model.parameters()]


comm.begin(os.environ["COMM"], print)
if os.environ["COMM"] == "finite":  # what is sent is looked at where somebody wants to know
    comm.when_started(lambda: comm.watch().sending.append(lambda _, bad: tell("bad", len(bad))))
dist.init_process_group("gloo")
torch.set_num_threads(1)
weights = {"calls": calls, "ddp": ddp}[sys.argv[1]](int(sys.argv[2]))
tell("weights", weights)
tell("memory", [memory[len(memory) // 10], memory[-1]])
tell("kernels", torch._C._dispatch_has_kernel_for_dispatch_key("c10d::allreduce_", "BackendSelect"))
comm.end()
dist.barrier()
dist.destroy_process_group()
