"""Two ranks, each kind of call once; prints as JSON what the record of calls has seen of them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from comm_watch import comm, tell
from torch import nn
from torch.nn.parallel import DistributedDataParallel

calls: list[Any] = []


def note_all(record: Any) -> None:
    """Keep every call of a record in `calls`: the record itself forgets those that are over."""
    enter = record.enter

    def noting(*arguments: Any) -> Any:
        call = enter(*arguments)
        calls.append(call)
        return call

    record.enter = noting


def one_of_each() -> None:
    """Make each kind of call, by torch's functions."""
    dist.all_reduce(tensor)
    with torch.inference_mode():
        dist.all_reduce(torch.ones(3))
    dist.barrier()
    dist.broadcast(tensor, 0)
    dist.all_gather_object([None, None], {"rank": rank})
    dist.all_reduce(tensor, async_op=True).wait()
    dist.all_gather_into_tensor(torch.empty(8), tensor)
    dist.reduce(tensor, 0)
    assert functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD).sum() == 6
    dist.monitored_barrier()
    peer = 1 - rank
    first, second = (dist.send, dist.recv) if rank == 0 else (dist.recv, dist.send)
    first(tensor, peer)
    second(tensor, peer)


def open_call() -> list[bool]:
    """Return whether a call is open before the other rank makes it, and after it is waited for."""
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["rank 0 looks"])
    work = dist.all_reduce(tensor, async_op=True)
    before = calls[-1].is_open
    store.set("rank 0 looks", "yes")
    work.wait()
    return [before, calls[-1].is_open]


def in_child() -> None:
    """Tell what a forked child has of the record, which the parent still has."""
    unwaited = dist.all_reduce(tensor, async_op=True)
    assert comm.record().kept
    child = os.fork()
    if not child:
        tell("child", len(comm.record().kept))
        os._exit(0)
    os.waitpid(child, 0)
    unwaited.wait()


def looked_at_late() -> dict[str, str]:
    """Train while rank 1 begins to look a step later; return what the last step has left."""
    model = DistributedDataParallel(nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for number in range(4):
        if number == rank:
            comm.begin("hash", print)
        model(torch.ones(2, 256)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    after: dict[str, str] = comm.steps().last[-1].after
    comm.end()
    return after


class Within(torch.autograd.Function):
    """Its backward pass has another one in it, and so on, until the innermost sends gradients."""

    @staticmethod
    def forward(
        ctx: Any, value: torch.Tensor, depth: int, loss: list[torch.Tensor]
    ) -> torch.Tensor:
        ctx.depth, ctx.loss = depth, loss
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        with torch.enable_grad():
            inner = ctx.loss[0] if ctx.depth == 0 else within(ctx.depth - 1, ctx.loss)
        inner.backward()
        return gradient, None, None


def within(depth: int, loss: list[torch.Tensor]) -> Any:
    """Return a value whose backward pass has that of a loss in it."""
    apply: Any = Within.apply
    return apply(torch.ones((), requires_grad=True), depth, loss)


def called_by_autograd() -> list[str]:
    """Have C++ make a call in a thread of its own, as with a GPU; return where it was, by depth.

    autograd takes another thread for the 61st pass within another.
    """
    places = []
    model = DistributedDataParallel(nn.Linear(4, 2))
    for depth in (59, 60):
        model.zero_grad()
        within(depth, [model(torch.ones(3, 4)).sum()]).backward()
        places.append(comm.record().last[-1].place)
    return places


def as_of_a_gpu(waits: bool) -> list[Any]:
    """Train a step; return its hashes. `waits`: they come as those of a GPU do."""
    looks: Any = import_module("dap_mux.rank.comm.looks")
    gpus, way = looks.GPUS, looks._on_their_way
    if waits:
        looks.GPUS = ("cpu",)
        looks._on_their_way = lambda _, there: (there.clone(), lambda: None)
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    comm.begin("hash", print)
    model(torch.ones(2, 256) + rank).square().sum().backward()
    dist.all_reduce(torch.ones(4))
    optimizer.step()
    step, record = comm.steps().last[-1], comm.record()
    calls = [[call.kind, *map(str, call.inputs), *map(str, call.outputs)] for call in record.last]
    comm.end()
    looks.GPUS, looks._on_their_way = gpus, way
    return [step.before, step.gradients, ["~" in found for found in step.after.values()], calls]


dist.init_process_group("gloo")
rank = dist.get_rank()
comm.begin("time", print)  # in a process that runs already
note_all(comm.record())
tensor = torch.ones(4) * rank
one_of_each()
tell("kinds", [call.kind for call in calls])
tell("numbers", [call.number for call in calls])
found = open_call()
if rank == 0:
    tell("open", found)
    tell("place", calls[-1].place)
    tell("shape", [calls[-1].shape, str(calls[-1].dtype)])
in_child()
if rank == 0:
    whole = torch.arange(100_003.0)
    others = [whole.clone() for _ in range(4)]
    others[0][77_777] += 1 / 128  # the last bit
    others[1][1000:1256] = whole[1256:1512]
    others[1][1256:1512] = whole[1000:1256]
    others[2][100_001:] = whole[100_001:].flip(0)
    others[3] = whole.roll(1)
    hashes = [import_module("dap_mux.rank.comm.looks").fingerprint(one) for one in [whole, *others]]
    again = import_module("dap_mux.rank.comm.looks").fingerprint(torch.arange(100_004.0)[:-1])
    tell("hashes", [len({*hashes}), again == hashes[0]])
    part = import_module("dap_mux.rank.comm.looks").fingerprint_of_part
    turns = [turn for turn in range(9) if part(whole, turn) != part(others[0], turn)]
    end = [turn for turn in range(8) if part(whole, turn) != part(others[2], turn)]
    tell("parts", [turns, end, part(whole, 9) == part(whole.clone(), 1)])
tell("called", called_by_autograd())
comm.end()
count = len(calls)
dist.all_reduce(tensor)
has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
kernels = has_kernel("c10d::allreduce_", "BackendSelect")
finders = sum(type(each).__module__ == comm.__name__ for each in sys.meta_path)
tell("after", [len(calls) - count, kernels, finders, comm.record() is None])
tell("late", looked_at_late())
tell("waits", [as_of_a_gpu(True), as_of_a_gpu(False)])
dist.destroy_process_group()
