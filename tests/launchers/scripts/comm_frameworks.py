"""Four ranks, each way to communicate by torch, in each mode of one job: what a watch has seen.

Prints JSON. With the watch off, torch's profiler counts the calls, which knows nothing of it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from comm_watch import comm, tell
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

MODES = ("off", "hash", "time", "finite", "off")
STEPS = 2
HAS_FSDP2 = hasattr(torch.cpu.Stream, "record_event")  # on CPUs; torch 2.6 has not


class Layers(nn.Module):
    """Layers with names for plans of parallelism; `aside` is used in even steps only."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(16, 32)
        self.norm = nn.BatchNorm1d(32)
        self.out = nn.Linear(32, 16)
        self.aside = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, *, aside: bool = True) -> torch.Tensor:
        y = self.out(torch.relu(self.norm(self.into(x))))
        return self.aside(y) if aside else y


class Plain(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(16, 32)
        self.out = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.into(x)))


def batch(seed: int = 0) -> torch.Tensor:
    """A batch of this rank's own."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randn(8, 16, generator=generator)


def weights(model: nn.Module) -> list[str]:
    """Each parameter's sum, exactly; of a DTensor this rank's part."""
    parameters = (getattr(each, "_local_tensor", each) for each in model.parameters())
    return [repr(float(each.detach().double().sum())) for each in parameters]


def trained(model: Any, *, accumulates: bool = False, **options: Any) -> list[str]:
    """Train for some steps; return the weights."""
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(STEPS):
        if accumulates:
            with model.no_sync():
                model(batch(step + 50), **options).pow(2).mean().backward()
        more = {"aside": not step % 2} if "aside" in options else {}
        model(batch(step), **{**options, **more}).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return weights(model)


def ddp_with_buckets() -> list[str]:
    return trained(DistributedDataParallel(Layers(), bucket_cap_mb=0.001))


def ddp_with_no_sync() -> list[str]:
    return trained(
        DistributedDataParallel(Layers(), gradient_as_bucket_view=True), accumulates=True
    )


def ddp_with_unused_parameters() -> list[str]:
    return trained(DistributedDataParallel(Layers(), find_unused_parameters=True), aside=True)


def fsdp2() -> list[str]:
    model = Plain()
    for layer in (model.into, model.out, model):
        fully_shard(layer)
    return trained(model)


def tensor_parallel() -> list[str]:
    plan = {"into": ColwiseParallel(), "out": RowwiseParallel()}
    mesh = init_device_mesh("cpu", (4,))
    return trained(parallelize_module(Plain(), mesh, plan))


def fsdp2_and_tensor_parallel() -> list[str]:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    plan = {"into": ColwiseParallel(), "out": RowwiseParallel()}
    model = parallelize_module(Plain(), mesh["model"], plan)
    fully_shard(model, mesh=mesh["data"])
    return trained(model)


def dtensor() -> list[str]:
    mesh = init_device_mesh("cpu", (4,))
    spread = distribute_tensor(torch.arange(16.0).view(4, 4), mesh, [Shard(0)])
    there = spread.redistribute(mesh, [Shard(1)]).redistribute(mesh, [Replicate()])
    assert isinstance(there, DTensor)
    return [repr(float(spread.full_tensor().sum())), repr(float(there.to_local().sum()))]


def functional_collectives() -> list[str]:
    summed = functional.all_reduce(batch(), "sum", dist.group.WORLD)
    gathered = functional.all_gather_tensor(batch(), 0, dist.group.WORLD)
    scattered = functional.reduce_scatter_tensor(batch(), "sum", 0, dist.group.WORLD)
    turned = functional.all_to_all_single(batch(), None, None, dist.group.WORLD)
    return [repr(float(each.sum())) for each in (summed, gathered, scattered, turned)]


def object_collectives() -> list[str]:
    everyone: list[Any] = [None] * 4
    dist.all_gather_object(everyone, {"rank": rank})
    sent = [{"from": rank}]
    dist.broadcast_object_list(sent, 1)
    got: list[Any] = [None]
    dist.scatter_object_list(got, [*"abcd"] if rank == 2 else None, 2)
    dist.gather_object(rank, everyone if rank == 3 else None, 3)
    return [repr((everyone, sent, got))]


def sends_and_receives() -> list[str]:
    to, source = (rank + 1) % 4, (rank - 1) % 4
    got = torch.empty(8, 16)
    first, second = (dist.send, dist.recv) if rank % 2 else (dist.recv, dist.send)
    first(batch() if first is dist.send else got, to if first is dist.send else source)
    second(batch() if second is dist.send else got, to if second is dist.send else source)
    work = dist.isend(batch(1), to)
    asynchronous = torch.empty(8, 16)
    dist.irecv(asynchronous, source).wait()
    work.wait()
    batched = torch.empty(8, 16)
    operations = [dist.P2POp(dist.isend, batch(2), to), dist.P2POp(dist.irecv, batched, source)]
    for each in dist.batch_isend_irecv(operations):
        each.wait()
    return [repr(float(each.sum())) for each in (got, asynchronous, batched)]


SCENES: tuple[Callable[[], list[str]], ...] = (
    ddp_with_buckets,
    ddp_with_no_sync,
    ddp_with_unused_parameters,
    fsdp2,
    tensor_parallel,
    fsdp2_and_tensor_parallel,
    dtensor,
    functional_collectives,
    object_collectives,
    sends_and_receives,
)


def look(scene: Callable[[], list[str]], mode: str) -> dict[str, Any]:
    """Play a scene: what it returns, how often each operator was called, and the hashes."""
    torch.manual_seed(0)
    record = comm.record()
    before = record.last[-1] if record is not None and record.last else None
    steps = comm.steps()
    made = len(steps.last) if steps is not None else 0
    watching = torch.profiler.profile() if record is None else nullcontext()
    with watching as profiled:
        values = scene()
    told = {"mode": mode, "scene": scene.__name__, "rank": rank, "values": values}
    if profiled is not None:
        found = {event.key: event.count for event in profiled.key_averages()}
        return {**told, "counts": {key[6:]: found[key] for key in found if key[:6] == "c10d::"}}
    calls = [*record.last]
    calls = calls[calls.index(before) + 1 :] if before is not None else calls
    hashes = [(one.kind, one.group[0], one.number, one.outputs) for one in calls]
    gradients = [one.gradients for one in [*steps.last][made:]]
    counts = Counter(one.operator for one in calls)
    return {**told, "counts": counts, "calls": hashes, "gradients": gradients}


def traces() -> list[str]:
    """What of torch, and of the importer, a watch could have left changed."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [*torch._C._dispatch_get_all_op_names()]
    ours = [each for each in names if each.startswith(("c10d::", "_c10d_functional::"))]
    optimizer: Any = sys.modules["torch.optim.optimizer"]
    hooks = (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks)
    kernels = [each for each in ours if has_kernel(each, "BackendSelect")]
    return [*kernels, repr(dist.Work.wait), *map(repr, hooks), repr(sys.meta_path)]


dist.init_process_group("gloo")
torch.set_num_threads(1)
rank = dist.get_rank()
clean = traces()
for mode in MODES:
    comm.begin(mode, print)
    for each in SCENES if HAS_FSDP2 else (one for one in SCENES if "fsdp2" not in one.__name__):
        tell("scene", look(each, mode))
tell("clean", traces() == clean and comm.record() is None)
dist.barrier()
dist.destroy_process_group()
