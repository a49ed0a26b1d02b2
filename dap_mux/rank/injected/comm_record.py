"""Records the communication calls of torch.distributed whose work is not complete.

A Python kernel in front of each `c10d::` operator sees every call, those of DDP's reducer in C++
too. docs/internals/comm.md has what was measured.
"""

from __future__ import annotations

import atexit
import os
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import FrameType, ModuleType

MODES = ("off", "time")
C10D = "torch.distributed.distributed_c10d"
WATCHED = frozenset({"torch", C10D})
LAYER = "BackendSelect"
"""The place of a dispatcher's kernels that every call passes, in `inference_mode` too.

`OpOverload.redispatch` lets go of Python's global lock on the way to the backend's kernel, which
`call_boxed` of `torch.library.get_kernel` does not: jobs deadlocked
(docs/internals/comm.md#the-global-lock).
"""
KINDS = {
    "_allgather_base_": "all_gather_into_tensor",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "allgather_": "all_gather",
    "allgather_coalesced_": "all_gather_coalesced",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "barrier": "barrier",
    "broadcast_": "broadcast",
    "gather_": "gather",
    "monitored_barrier_": "monitored_barrier",
    "recv_": "recv",
    "recv_any_source_": "recv",
    "reduce_": "reduce",
    "reduce_scatter_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
    "scatter_": "scatter",
    "send": "send",
}
POINT_TO_POINT = frozenset({"send", "recv_", "recv_any_source_"})
PEER_AT = {"send": 2, "recv_": 2}
INPUT_SECOND = frozenset({
    "_allgather_base_", "_reduce_scatter_base_", "allgather_", "allgather_coalesced_",
    "allgather_into_tensor_coalesced_", "gather_", "reduce_scatter_",
    "reduce_scatter_tensor_coalesced_",
})  # fmt: skip
"""Operators whose first argument is the output."""
UNEVEN = frozenset({"alltoall_", "alltoall_base_", "barrier", "monitored_barrier_"})
"""Operators whose tensors may differ between ranks, or are none of the user's."""
LOOKED_AT, WHOLE_EVERY = 4, 64
"""A call looks for complete ones among the oldest only, and every 64th among all."""
MAX_KEPT = 4096
MAX_KEPT_BYTES = 1 << 30
LIBRARIES = ("site-packages", "dist-packages")
MAX_FRAMES = 200


class Call:
    """One call: `work` is None once it is complete, or before the backend's kernel has returned.

    `shape`, `dtype`: of its first input, None for none. `group`: name and description. `peer`: a
    number in the group, -1 for none. `tid`: the caller's thread, `began`: as of `time.time_ns()`.
    """

    __slots__ = (
        "began", "bytes", "dtype", "group", "number", "operator", "peer", "place", "returned",
        "shape", "tid", "work",
    )  # fmt: skip

    def __init__(self, operator: str, group: tuple[str, str], number: int) -> None:
        self.operator = operator
        self.group = group
        self.number = number
        self.peer = -1
        self.shape: tuple[int, ...] | None = None
        self.dtype: Any = None
        self.bytes = 0
        self.place = ""
        self.tid = threading.get_native_id()
        self.began = time.time_ns()
        self.returned = False
        self.work: Any = None

    @property
    def kind(self) -> str:
        """Its function, as users of torch.distributed name it."""
        return KINDS[self.operator]

    @property
    def is_open(self) -> bool:
        """Whether the call has not returned, or its work is not complete."""
        work = self.work
        return not self.returned or (work is not None and not work.is_completed())


class Record:
    """The calls of this process. It has no lock: a call may begin in any thread, or in a finalizer.

    `kept`: the open calls by their order, and complete ones that no later call has cleared away
    yet. A backend needs a work's tensors until it is complete, so keeping it costs memory only from
    then to the next call. Works beyond MAX_KEPT_BYTES are not kept: whether their calls are open is
    not known. `last`: the newest call of each group, collectives and sends apart.
    """

    def __init__(self) -> None:
        c10d: Any = sys.modules[C10D]
        self.kept: dict[int, Call] = {}
        self.last: dict[tuple[str, bool], Call] = {}
        self._bytes = 0
        self._order = count()
        self._numbers: dict[tuple[str, bool], count[int]] = {}
        self._process_group, self._work = c10d.ProcessGroup, c10d.Work

    def enter(self, operator: str, at: int, arguments: tuple[Any, ...]) -> Call:
        """Note that a call begins; `at`: the place of its group among the arguments."""
        order = next(self._order)
        self._clear(LOOKED_AT if order % WHOLE_EVERY else sys.maxsize)
        group = self._process_group.unbox(arguments[at])
        name, p2p = str(group.group_name), operator in POINT_TO_POINT
        if (name, p2p) not in self._numbers:
            self._numbers.setdefault((name, p2p), count(1 + _so_far(group, p2p)))
        call = Call(operator, (name, str(group.group_desc)), next(self._numbers[name, p2p]))
        if operator in PEER_AT:
            call.peer = int(arguments[PEER_AT[operator]])
        if operator not in UNEVEN:
            tensors = arguments[operator in INPUT_SECOND]
            while isinstance(tensors, (list, tuple)):
                tensors = tensors[0] if tensors else None
            if tensors is not None:
                call.shape, call.dtype = tuple(tensors.shape), tensors.dtype
        call.bytes = sum(map(_bytes_of, arguments[:2]))
        call.place = _place(sys._getframe(2))  # noqa: SLF001
        self.last[name, p2p] = self.kept[order] = call
        return call

    def leave(self, call: Call, result: Any) -> None:
        """Note that the backend has taken a call, and what it has returned."""
        work = result[-1] if isinstance(result, (list, tuple)) and result else result
        fits = len(self.kept) <= MAX_KEPT and self._bytes + call.bytes <= MAX_KEPT_BYTES
        if hasattr(work, "_type") and (fits or not self._bytes):
            call.work = self._work.unbox(work)
            self._bytes += call.bytes

    def _clear(self, most: int) -> None:
        """Let go of complete works, until so many have been found open."""
        for order, call in [*self.kept.items()]:
            if call.is_open:
                most -= 1
                if not most:
                    return
            elif self.kept.pop(order, None) is not None:  # another thread may have been faster
                self._bytes -= call.bytes if call.work is not None else 0
                call.work = None
        if most > WHOLE_EVERY:  # threads that count at once lose some
            self._bytes = sum(call.bytes for call in [*self.kept.values()] if call.work is not None)


def _so_far(group: Any, p2p: bool) -> int:
    """How many collectives a group has had before it was first seen, by its backend's count."""
    try:
        return 0 if p2p else int(group._get_sequence_number_for_group())  # noqa: SLF001
    except RuntimeError:  # a backend without it
        return 0


def _bytes_of(tensors: Any) -> int:
    if isinstance(tensors, (list, tuple)):
        return sum(map(_bytes_of, tensors))
    return int(getattr(tensors, "nbytes", 0))


_users: dict[str, bool] = {}


def _place(frame: FrameType | None) -> str:
    """Return `path:line function` of the innermost frame of the user's code, "" for none."""
    left = MAX_FRAMES
    while frame is not None and left:
        path = frame.f_code.co_filename
        if path not in _users:
            _users[path] = not _is_library(path)
        if _users[path]:
            return f"{path}:{frame.f_lineno} {frame.f_code.co_name}"
        frame, left = frame.f_back, left - 1
    return ""


def _is_library(path: str) -> bool:
    folders = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    return path.startswith(("<frozen", *folders, ours)) or any(one in path for one in LIBRARIES)


class Watch:
    """The kernels in front of torch's, from `begin` to `end`."""

    def __init__(self, log: Callable[[str], object]) -> None:
        self.record = Record()
        self._log: Callable[[str], object] | None = log
        torch: Any = sys.modules["torch"]
        self._library = torch.library.Library("c10d", "IMPL")
        key = getattr(torch._C.DispatchKey, LAYER)  # noqa: SLF001
        for operator in KINDS:
            packet = getattr(torch.ops.c10d, operator, None)
            if packet is not None:
                kernel = self._kernel(operator, packet.default, key)
                self._library.impl(operator, kernel, LAYER, with_keyset=True)

    def _kernel(self, operator: str, overload: Any, layer: Any) -> Callable[..., Any]:
        names = [argument.name for argument in overload._schema.arguments]  # noqa: SLF001
        at, record, redispatch = names.index("process_group"), self.record, overload.redispatch

        def kernel(keys: Any, *arguments: Any, **named: Any) -> Any:
            call = None
            try:
                call = record.enter(operator, at, arguments)
            except Exception as error:  # noqa: BLE001  (the program's call goes on)
                self._fails(error)
            try:
                result = redispatch(keys.remove(layer), *arguments, **named)
            except BaseException:
                if call is not None:
                    call.returned = True
                raise
            if call is not None:
                try:
                    record.leave(call, result)
                except Exception as error:  # noqa: BLE001
                    self._fails(error)
                call.returned = True
            return result

        return kernel

    def _fails(self, error: Exception) -> None:
        log, self._log = self._log, None
        if log is not None:
            log(f"misses communication calls: {type(error).__name__}: {error}")

    def end(self) -> None:
        """Give torch its own kernels back."""
        self._library._destroy()  # noqa: SLF001


# One watch for the process.


class _State:
    """The watch, once torch.distributed is there, and the finder that waits for it."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.finder: _Finder | None = None


_state = _State()


class _Finder:
    """Among the finders of modules: begins the watch when torch has been imported."""

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin = begin

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find torch as the others do, and have its loader tell; find nothing else."""
        if name not in WATCHED:
            return None
        others = [each for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec: Any = next((spec for spec in found if spec is not None), None)
        execute = getattr(spec and spec.loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            with suppress(AttributeError):
                del spec.loader.exec_module
            execute(module)
            if name == "torch" or not _is_importing("torch"):
                self._begin()

        with suppress(AttributeError):  # a loader of somebody's that lets nothing be set
            spec.loader.exec_module = exec_module
        return spec


def _is_importing(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def begin(mode: str, log: Callable[[str], object]) -> None:
    """Record calls once torch.distributed has been imported, or end that; `log` is told of failure.

    `mode`: one of MODES. Raises ValueError for another.
    """
    if mode not in MODES:
        raise ValueError(f"comm={mode}: must be one of {', '.join(MODES)}")
    if mode == "off":
        end()
    elif _state.watch is not None or _state.finder is not None:
        return
    elif C10D in sys.modules and not _is_importing("torch"):
        _start(log)
    else:
        _state.finder = _Finder(lambda: _start(log))
        sys.meta_path.insert(0, _state.finder)


def _start(log: Callable[[str], object]) -> None:
    if C10D not in sys.modules or _state.watch is not None:
        return
    _forget_finder()
    try:
        _state.watch = Watch(log)
        atexit.register(end)  # works are let go of while torch is still whole
    except Exception as error:  # noqa: BLE001  (private parts of torch: the job goes on)
        version = getattr(sys.modules["torch"], "__version__", "?")
        log(f"records no communication calls with torch {version}: {type(error).__name__}: {error}")


def _forget_finder() -> None:
    if _state.finder in sys.meta_path:
        sys.meta_path.remove(_state.finder)
    _state.finder = None


def end() -> None:
    """Record no calls any more; torch is as it was."""
    atexit.unregister(end)
    _forget_finder()
    watch, _state.watch = _state.watch, None
    if watch is not None:
        watch.end()


def record() -> Record | None:
    """Return the record, None where nothing is recorded."""
    return _state.watch.record if _state.watch is not None else None


def _in_forked_child() -> None:
    """No thread of a backend is in it that could complete works: none is destroyed there either."""
    if _state.watch is not None:
        _parents.append(_state.watch.record.kept)
        _state.watch.record.__init__()  # type: ignore[misc]


_parents: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
