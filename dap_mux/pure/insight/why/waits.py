"""Recognises what a rank waits for, by its stack, the call that it is in, and torch's record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.insight.why.evidence import Call, Collective, Sample, Thread
from dap_mux.pure.insight.why.workers import awaited_result

TORCH: Final = "torch/distributed/distributed_c10d.py"
TORCH_FILES: Final = (TORCH, "torch/distributed/_functional_collectives.py")
LIBRARY: Final = "/torch/"
CALLED: Final = "called"
COMPLETED: Final = "completed"
BACKWARD: Final = ("torch/autograd/__init__.py", "torch/autograd/graph.py")
GRADIENTS: Final = "all_reduce"
"""What DDP's reducer calls in C++, while Python's frames say `loss.backward()`."""
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
    "allgather", "allgathercoalesced", "allgatherintotensor", "allgatherintotensorcoalesced",
    "allgatherobject", "allgatherv", "allreduce", "allreducecoalesced", "alltoall",
    "alltoallsingle", "alltoallv", "barrier", "broadcast", "broadcastobjectlist", "bcast",
    "exscan", "gather", "gatherobject", "gatherv", "monitoredbarrier", "reduce",
    "reducescatter", "reducescattertensor", "reducescattertensorcoalesced", "scan", "scatter",
    "scatterobjectlist", "scatterv",
})  # fmt: skip
OF_COMMUNICATORS: Final = frozenset({
    "alltoallw", "create", "creategroup", "dup", "dupwithinfo", "free", "reducescatterblock",
    "split", "splittype",
})  # fmt: skip
"""Collectives of MPI whose names mean something else elsewhere."""
OF_ANY_SPELLING: Final = ("allgather", "allreduce", "alltoall", "reducescatter")
"""How names of collectives begin, whatever follows: each torch has another `all_gather_single`."""
NEW_GROUP: Final = "new_group"
PORT: Final = "port"
INIT_METHOD: Final = "init_method"
MAX_TEXT: Final = 200
STORE: Final = "Store."
UNKNOWN_KIND: Final = "a collective"
UNKNOWN_PEER: Final = "a send or receive"
ASKS: Final = ("get_", "is_")
"""How functions of torch.distributed begin that wait for nobody: a loop may call them always."""
ROOTS: Final = frozenset({"broadcast", "gather", "reduce", "scatter"})
PASSED_BY_SOME: Final = ROOTS | {
    "broadcastobjectlist", "gatherobject", "gatherv", "scatterobjectlist", "scatterv",
}  # fmt: skip
"""Collectives that a rank may leave while others of its group are still in them."""
TORCH_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "send": ("dst", "tag"),
    "recv": ("src", "tag"),
    "broadcast": ("src", "group_src"),
    "scatter": ("src", "group_src"),
    "gather": ("dst", "group_dst"),
    "reduce": ("dst", "group_dst"),
    JOINS: ("rank", "world_size", INIT_METHOD),
    "_create_c10d_store": ("rank", "world_size", "hostname", "port"),
    "_new_group_with_tag": ("ranks",),
}
"""Names in functions of torch.distributed that tell what they were given."""
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
    connection to that peer, where only that is known. `members`: of its group, by those numbers, ()
    for unknown; `size`: how many they are, 0 for unknown. `called_at`: the frames that call it,
    which are alike on ranks that take different parts in it. `age`: seconds. `result`: of a task,
    by whoever runs it, is awaited. `agreed`: what all ranks must give alike, by name.
    `calls_itself`: the number under which a rank joins the others. `own`: it may be for a process
    of its own. `by_socket`: the program's own code is in a socket's call, no library of ranks.
    """

    kind: str
    group: str = ""
    number: int = -1
    peer: int = -1
    tag: int | None = None
    socket: str = ""
    members: tuple[int, ...] = ()
    size: int = 0
    called_at: Stack = ()
    sizes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    age: float | None = None
    timeout: float | None = None
    result: bool = False
    agreed: Mapping[str, str] = field(default_factory=dict)
    calls_itself: int = -1
    own: bool = False
    by_socket: bool = False

    @property
    def plain(self) -> str:
        """The kind without its spelling: `all_reduce` and `Allreduce` are one."""
        return plain(self.kind)

    @property
    def call(self) -> tuple[str, str, int]:
        """The known properties that ranks in the same call share."""
        return self.plain, self.group, self.number

    @property
    def point_to_point(self) -> bool:
        """Whether it is a send or a receive."""
        return self.plain in POINT_TO_POINT

    @property
    def collective(self) -> bool:
        """Whether it is known to be a call of all ranks of a group."""
        if self.kind in (NEW_GROUP, UNKNOWN_KIND):
            return True
        return is_collective(self.kind) or (self.size > 0 and self.plain in OF_COMMUNICATORS)

    @property
    def by_place(self) -> bool:
        """Whether all ranks wait so, and only the place of the call may tell for what."""
        known = self.number >= 0 or self.socket
        return not known and (self.collective or self.kind.startswith(STORE))

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


def is_collective(kind: str) -> bool:
    """Whether this is the name of a call of all ranks of a group."""
    name = plain(kind)
    return name in COLLECTIVES or name.startswith(OF_ANY_SPELLING)


def communicates(kind: str) -> bool:
    """Whether this is the name of a call that needs other ranks."""
    return plain(kind) in POINT_TO_POINT or is_collective(kind)


def wait_of(sample: Sample, thread: Thread, stack: Stack) -> Wait | None:
    """Return what a thread waits for in other ranks; None where it does something else."""
    entered = _entered(stack)
    wait = _wait_of(sample, thread, stack, stack[entered] if entered >= 0 else None)
    if wait is None:
        return None
    if thread.call is not None:
        wait = _with_agreed(wait, thread.call.arguments)
    outside = stack[:entered] if entered >= 0 and not _is_mpi(thread.call) else stack
    return replace(wait, called_at=tuple(frame for frame in outside if not frame.library))


def _wait_of(sample: Sample, thread: Thread, stack: Stack, frame: Frame | None) -> Wait | None:
    call, kind = thread.call, frame.function if frame is not None else ""
    if wait := _of_its_own_kind(stack, call):
        return wait
    if inside := [one for one in sample.collectives if _is_called_by(one, thread)]:
        return _of_record(inside[-1])
    own = any(each.path.endswith(OWN_PROCESSES) for each in stack)
    if own and (frame is None or frame.path.endswith(OWN_PROCESSES)):
        # Its connections are to its own processes, unless another rank has the other end.
        socket = thread.file if thread.file.startswith("socket:") else ""
        return Wait(kind or thread.system_call, socket=socket, own=True) if socket else None
    if _is_in_torch(stack, call):
        return _recorded(sample, stack, kind, call)
    in_backward = _waits_in_backward(sample, thread, stack)
    if in_backward or _sleeps_in_torch(sample, thread, stack):
        wait = _recorded(sample, stack, kind, None)
        unknown = wait is None or wait.kind == UNKNOWN_KIND
        return Wait(GRADIENTS) if in_backward and unknown else wait
    return _of_others(thread, kind)


def _of_others(thread: Thread, kind: str) -> Wait | None:
    """By MPI's call, or the connection that is read."""
    call = thread.call
    if call is not None and _is_mpi(call):
        return _of_mpi(call)
    if _waits_for_a_peer(thread):
        name = kind or (call.function.rpartition(".")[2] if call else "") or thread.system_call
        return Wait(name, socket=thread.file, by_socket=True)
    return None


def _of_its_own_kind(stack: Stack, call: Call | None) -> Wait | None:
    """Return the wait for a task's result, for all ranks to begin, or for a key in the store."""
    if result := awaited_result(stack):
        return Wait(result, result=True)
    for each in (JOINS, NEW_GROUP):
        if any(frame.path.endswith(TORCH) and frame.function == each for frame in stack):
            return Wait(each)
    if call is not None and call.function.startswith(TORCH_CALLS) and STORE in call.function:
        return Wait(f"{STORE}{call.function.rpartition('.')[2]}")
    return None


def _with_agreed(wait: Wait, told: Mapping[str, Any]) -> Wait:
    """Add what torch's functions were given, which must be alike in all ranks."""
    if wait.kind == NEW_GROUP and "ranks" in told:
        return replace(wait, agreed={"ranks": f"of ranks {told['ranks']}"})
    if wait.kind == JOINS:
        names = {"hostname": "at host {}", PORT: "at port {}", "world_size": "for {} ranks"}
        agreed = {name: text.format(told[name]) for name, text in names.items() if name in told}
        if INIT_METHOD in told:  # what follows a question mark may be a rank's own
            agreed[INIT_METHOD] = f"by {str(told[INIT_METHOD])[:MAX_TEXT].partition('?')[0]}"
        own = told["rank"] if _is_rank_number(told.get("rank")) else -1
        return replace(wait, agreed=agreed, calls_itself=own)
    if wait.plain in ROOTS:
        end = next((name for name in ("group_src", "group_dst", "src", "dst") if name in told), "")
        if end:
            way = "from" if end.endswith("src") else "to"
            return replace(wait, agreed={"root": f"{way} rank {told[end]}"})
    return wait


def _is_mpi(call: Call | None) -> bool:
    return call is not None and call.function.startswith(MPI)


def _of_mpi(call: Call) -> Wait | None:
    """Peers are numbers of the communicator; its members are all ranks, or a part of them."""
    name = call.function.rpartition(".")[2]
    if not communicates(name) and plain(name) not in OF_COMMUNICATORS:
        return Wait(name) if name.lower().startswith("wait") else None
    members, size = _members(call.of.get("members")), call.of.get("size")
    wait = replace(_told_by(call, name), members=members, size=size if type(size) is int else 0)
    if members and wait.peer >= 0:
        peer = members[wait.peer] if wait.peer < len(members) else -1
        wait = replace(wait, peer=peer)
    is_part = len(members) > 1 and sorted(members) != list(range(len(members)))
    return replace(wait, group=",".join(map(str, members))) if is_part else wait


def _members(told: Any) -> tuple[int, ...]:
    """Whatever a rank tells may be malformed."""
    if not isinstance(told, list) or not all(type(one) is int and one >= 0 for one in told):
        return ()
    return tuple(told)


def _is_in_torch(stack: Stack, call: Call | None) -> bool:
    for frame in stack[-4:]:
        if frame.path.endswith(TORCH_FILES):
            return not frame.function.startswith(ASKS)
    return call is not None and call.function.startswith(TORCH_CALLS)


def _waits_in_backward(sample: Sample, thread: Thread, stack: Stack) -> bool:
    """Whether it sleeps in a backward pass of a distributed job: for what other ranks send.

    On CPUs the thread that calls `backward` computes it itself. With a device the host sleeps here
    while that computes, too; then it wakes in between, and is not at one place for long.
    """
    asleep = thread.state == "S" and not thread.owns_gil
    return sample.world_rank >= 0 and asleep and bool(stack) and stack[-1].path.endswith(BACKWARD)


def _is_called_by(one: Collective, thread: Thread) -> bool:
    """Whether it is known that the backend has not returned from this thread's call."""
    return one.state == CALLED and one.tid == thread.tid


def _sleeps_in_torch(sample: Sample, thread: Thread, stack: Stack) -> bool:
    """Whether it sleeps somewhere in torch, on a line whose communication is open.

    An open call alone keeps nobody: who has not waited for it yet is at another line, or at work.
    """
    innermost = stack[-1] if stack else None
    if innermost is None or not innermost.library or LIBRARY not in innermost.path:
        return False
    here = _line_of(stack)
    return thread.state == "S" and any(
        one.place == here and one.state != COMPLETED for one in sample.collectives
    )


def _line_of(stack: Stack) -> str:
    """Return the user's innermost line as a rank's record of calls names it; "" for none."""
    own = [frame for frame in stack if not frame.library]
    return f"{own[-1].path}:{own[-1].line} {own[-1].function}" if own else "none"


def _entered(stack: Stack) -> int:
    """Return the place of the outermost function that is called like a communication, -1 for none.

    A function of the program may be called like one that it calls in a library of its own, or a
    step of several of them: so of collectives, those of the innermost one's file count.
    """
    found = [at for at, frame in enumerate(stack) if communicates(frame.function)]
    collectives = [at for at in found if is_collective(stack[at].function)]
    if collectives:
        file = stack[collectives[-1]].path
        found = [at for at in collectives if stack[at].path == file]
    return found[0] if found else -1


def _recorded(sample: Sample, stack: Stack, kind: str, call: Call | None) -> Wait | None:
    """By the rank's record or torch's flight recorder; else by the function the thread is in.

    The record knows the lines of the calls. One of another line that is open goes on beside it.
    """
    under_way = [one for one in sample.collectives if one.state != COMPLETED]
    same = [one for one in under_way if plain(one.kind.split(" ")[0]) == plain(kind)]
    found = same or under_way
    here = _line_of(stack)
    found = ([one for one in found if one.place == here] or found)[:1]  # it holds up the others
    if not kind and not found:
        return Wait(UNKNOWN_PEER) if call is not None else Wait(UNKNOWN_KIND)
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
    told = call.arguments
    peer = next((told[name] for name in _PEERS if _is_rank_number(told.get(name))), -1)
    tag = told.get("tag")
    return Wait(kind, peer=peer, tag=tag if isinstance(tag, int) else None)


def _is_rank_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _waits_for_a_peer(thread: Thread) -> bool:
    call = thread.call
    by_name = call is not None and call.function.startswith(SOCKET_FUNCTIONS)
    by_system = thread.system_call in NETWORK_CALLS and thread.file.startswith("socket:")
    return by_name or by_system
