"""Recognises what a rank waits for, by its stack, the call that it is in, and torch's record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dap_mux.insight.stack_tree import Stack
from dap_mux.insight.why.evidence import Call, Collective, Sample, Thread

TORCH: Final = "torch/distributed/distributed_c10d.py"
TORCH_CALLS: Final = ("torch._C._distributed_c10d.", "torch.distributed.distributed_c10d.")
JOINS: Final = "init_process_group"
OWN_PROCESSES: Final = (
    "multiprocessing/connection.py", "multiprocessing/queues.py", "torch/utils/data/dataloader.py",
)  # fmt: skip
MPI: Final = "mpi4py."
SENDS: Final = frozenset({"send", "isend", "ssend", "bsend", "rsend", "issend", "ibsend"})
RECEIVES: Final = frozenset({"recv", "irecv", "mrecv", "probe", "mprobe"})
POINT_TO_POINT: Final = SENDS | RECEIVES | {"sendrecv", "batchisendirecv"}
COLLECTIVES: Final = frozenset({
    "allgather", "allgatherintotensor", "allgatherobject", "allgatherv", "allreduce",
    "allreducecoalesced", "alltoall", "alltoallsingle", "alltoallv", "barrier", "broadcast",
    "broadcastobjectlist", "bcast", "exscan", "gather", "gatherobject", "gatherv",
    "monitoredbarrier", "reduce", "reducescatter", "reducescattertensor", "scan", "scatter",
    "scatterobjectlist", "scatterv",
})  # fmt: skip
COMMUNICATION: Final = COLLECTIVES | POINT_TO_POINT
SAME: Final = {"bcast": "broadcast"}
NETWORK_CALLS: Final = frozenset({
    "accept", "accept4", "connect", "epoll_pwait", "epoll_wait", "poll", "ppoll", "pselect6",
    "recvfrom", "recvmsg", "select", "sendmsg", "sendto",
})  # fmt: skip
SOCKET_FUNCTIONS: Final = ("_socket.socket.", "socket.socket.", "select.")
_ARROW: Final = re.compile(r"(\w+) (\d+)(->|<-)(\d+)")  # torch's names of sends: `send 0->1`
_PEERS: Final = ("dest", "dst", "source", "src", "group_dst", "group_src", "0", "1")


@dataclass(frozen=True)
class Wait:
    """A call that ends only once other ranks make theirs.

    `kind`: as it is called; `number`: which one of its group, -1 for unknown; `peer`: the only rank
    that it waits for, by the library's own number, -1 for all or unknown; `socket`: the name of the
    connection to that peer, where only that is known. `age`: seconds.
    """

    kind: str
    group: str = ""
    number: int = -1
    peer: int = -1
    tag: int | None = None
    socket: str = ""
    members: tuple[int, ...] = ()
    sizes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    age: float | None = None
    timeout: float | None = None

    @property
    def plain(self) -> str:
        """The kind without its spelling: `all_reduce` and `Allreduce` are one."""
        return plain(self.kind)

    @property
    def point_to_point(self) -> bool:
        """Whether it is a send or a receive."""
        return self.plain in POINT_TO_POINT

    @property
    def collective(self) -> bool:
        """Whether it is known to be a call of all ranks of a group."""
        return self.plain in COLLECTIVES

    def __str__(self) -> str:
        """Name it as a user does: `all_reduce #41 of group dp`."""
        number = f" #{self.number}" if self.number >= 0 else ""
        group = f" of group {self.group}" if self.group else ""
        peer = ""
        if self.peer >= 0:
            peer = f" {'to' if self.plain in SENDS else 'from'} rank {self.peer}"
        return f"{self.kind}{number}{group}{peer}"


def plain(kind: str) -> str:
    """Return a communication's name without underscores and capitals."""
    name = kind.lower().replace("_", "").strip()
    return SAME.get(name, name)


def wait_of(sample: Sample, thread: Thread, stack: Stack) -> Wait | None:
    """Return what a thread waits for in other ranks; None where it does something else."""
    kind = _on_the_stack(stack)
    call = thread.call
    if any(frame.path.endswith(TORCH) and frame.function == JOINS for frame in stack):
        return Wait(JOINS)
    if not kind and any(frame.path.endswith(OWN_PROCESSES) for frame in stack):
        return None  # its connections are to its own processes
    if _is_in_torch(stack, call):
        return _recorded(sample, kind, call)
    if call is not None and call.function.startswith(MPI):
        name = call.function.rpartition(".")[2]
        if plain(name) in COMMUNICATION:
            return _told_by(call, name)
        return Wait(name) if name.lower().startswith("wait") else None
    if _waits_for_a_peer(thread):
        name = kind or (call.function.rpartition(".")[2] if call else "") or thread.system_call
        return Wait(name, socket=thread.file)
    return None


def _is_in_torch(stack: Stack, call: Call | None) -> bool:
    if any(frame.path.endswith(TORCH) for frame in stack[-4:]):
        return True
    return call is not None and call.function.startswith(TORCH_CALLS)


def _on_the_stack(stack: Stack) -> str:
    """Return the outermost function that is called like a communication, "" for none."""
    return next((each.function for each in stack if plain(each.function) in COMMUNICATION), "")


def _recorded(sample: Sample, kind: str, call: Call | None) -> Wait | None:
    """By torch's flight recorder; else by the function that the thread is in."""
    under_way = [one for one in sample.collectives if one.state != "completed"]
    same = [one for one in under_way if plain(one.kind.split(" ")[0]) == plain(kind)]
    found = (same or under_way)[:1]  # the oldest one holds up the others
    if not kind and not found:
        return Wait("a send or receive") if call is not None else None
    if not found or (plain(kind) in POINT_TO_POINT and not same):  # gloo records none of those
        return (_told_by(call, kind) if call is not None else Wait(kind)) if kind else None
    wait = _of_record(found[0])
    if wait.peer < 0 and call is not None and wait.point_to_point:
        told = _told_by(call, wait.kind)
        return Wait(wait.kind, wait.group, wait.number, told.peer, told.tag, age=wait.age)
    return wait


def _of_record(one: Collective) -> Wait:
    kind, peer = one.kind, -1
    if arrow := _ARROW.fullmatch(one.kind):
        kind, peer = arrow[1], int(arrow[4])
    return Wait(
        kind,
        one.group,
        one.number,
        peer,
        members=tuple(one.members),
        sizes=tuple(tuple(each) for each in one.sizes),
        dtypes=tuple(one.dtypes),
        age=one.age,
        timeout=one.timeout or None,
    )


def _told_by(call: Call, kind: str) -> Wait:
    """The peer is named by the call itself, where it is a number."""
    if plain(kind) not in POINT_TO_POINT:
        return Wait(kind)
    names = _PEERS
    peer = next((call.arguments[name] for name in names if _is_rank(call, name)), -1)
    tag = call.arguments.get("tag")
    return Wait(kind, peer=peer, tag=tag if isinstance(tag, int) else None)


def _is_rank(call: Call, name: str) -> bool:
    value = call.arguments.get(name)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _waits_for_a_peer(thread: Thread) -> bool:
    call = thread.call
    by_name = call is not None and call.function.startswith(SOCKET_FUNCTIONS)
    by_system = thread.system_call in NETWORK_CALLS and thread.file.startswith("socket:")
    return by_name or by_system
