"""Two ranks whose mode another thread changes all the time, while they make small calls."""

from __future__ import annotations

import threading
from itertools import cycle

import torch
import torch.distributed as dist
from comm_watch import comm, tell

MODES = ("time", "hash", "finite", "off", "hash", "off")
COUNT = 3000
done = threading.Event()


def switch() -> None:
    """Change the mode, as a session's thread does in a rank that runs."""
    for mode in cycle(MODES):
        if done.wait(0.003):
            return
        comm.begin(mode, str)


dist.init_process_group("gloo")
torch.set_num_threads(1)
thread = threading.Thread(target=switch)
thread.start()
tensor, total = torch.ones(4), torch.zeros(4)
for step in range(COUNT):
    work = dist.all_reduce(tensor.fill_(1), async_op=bool(step % 2))
    if work is not None:
        work.wait()
    total += tensor
done.set()
thread.join()
comm.begin("off", print)
has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key("c10d::allreduce_", "BackendSelect")
tell("switched", [float(total.sum()) == 8 * COUNT, has_kernel])
dist.barrier()
dist.destroy_process_group()
