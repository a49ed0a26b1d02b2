"""The communication calls of this process: those that are open, and the last of all."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from dap_mux.rank.comm.looks import Later, fingerprint_later
from dap_mux.rank.comm.operators import NONE, OPERATORS, tensors_in

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import FrameType

C10D = "torch.distributed.distributed_c10d"
LOOKED_AT, WHOLE_EVERY = 4, 64
"""A call looks for complete ones among the oldest only, and every 64th among all."""
MAX_KEPT = 4096
"""So many calls are remembered, and so many works kept."""
MAX_KEPT_BYTES = 1 << 30
LIBRARIES = ("site-packages", "dist-packages")
MAX_FRAMES = 200


class Call:
    """One call: `work` is None once it is complete, or before the backend's kernel has returned.

    `shape`, `dtype`: of its first input, None for none. `group`: name and description. `peer`: a
    number in the group, -1 for none. `tid`: the caller's thread, `began`: as of `time.time_ns()`,
    `ended`: when it was complete, 0 before; exact where somebody waited, else when that was seen.
    `step`: the step it was made in. `inputs`, `outputs`: the hashes of their tensors, as far as
    they were asked for; `written`: those tensors, until their hashes are known. `addresses`: where
    its inputs are in memory.
    """

    __slots__ = (
        "addresses", "began", "bytes", "dtype", "ended", "group", "inputs", "number", "operator",
        "outputs", "peer", "place", "returned", "shape", "step", "tid", "work", "written",
    )  # fmt: skip

    def __init__(self, operator: str, group: tuple[str, str], number: int) -> None:
        self.operator = operator
        self.group = group
        self.number = number
        self.peer = NONE
        self.shape: tuple[int, ...] | None = None
        self.dtype: Any = None
        self.bytes = self.step = self.ended = 0
        self.place = ""
        self.tid = threading.get_native_id()
        self.began = time.time_ns()
        self.returned = False
        self.work: Any = None
        self.addresses: list[int] = []
        self.inputs: list[str | Later] = []
        self.outputs: list[str | Later] = []
        self.written: list[Any] = []

    @property
    def kind(self) -> str:
        """Its function, as users of torch.distributed name it."""
        return OPERATORS[self.operator].kind

    @property
    def ranks(self) -> list[int]:
        """The ranks of its group."""
        return ranks_of(self.group[0])

    @property
    def is_open(self) -> bool:
        """Whether the call has not returned, or its work is not complete."""
        work = self.work
        return not self.returned or (work is not None and not work.is_completed())

    def end(self, *, looks: bool) -> None:
        """Note that it is complete; `looks`: nobody can have used its outputs yet."""
        self.ended, self.work = self.ended or time.time_ns(), None
        self.look(looks=looks)

    def look(self, *, looks: bool = True) -> None:
        """Hash what has been written, where `looks`, and let go of it."""
        written, self.written = self.written, []
        if looks and written:
            self.outputs = [*map(self.digest, written)]

    def digest(self, value: Any) -> str | Later:
        """Return the hash of what has been written."""
        return fingerprint_later(value)


def ranks_of(group: str) -> list[int]:
    """Return the ranks of a process group, by its name."""
    c10d: Any = sys.modules[C10D]
    for each, name in [*c10d._world.pg_names.items()]:  # noqa: SLF001  (no public way by name)
        if name == group:
            return [*map(int, c10d.get_process_group_ranks(each))]
    return []


C = TypeVar("C", bound=Call)


class Record:
    """The calls of this process. It has no lock: a call may begin in any thread, or in a finalizer.

    `kept`: the open calls by their order, and complete ones that no later call has cleared away
    yet. A backend needs a work's tensors until it is complete, so keeping it costs memory only from
    then to the next call. Works beyond MAX_KEPT_BYTES are not kept: whether their calls are open is
    not known. `newest`: the newest call of each group, collectives and sends apart. `last`: the
    last MAX_KEPT of all. `step`: the number of the step that is under way. `entered`: who is told
    of each call when it begins; `taken`: who is given what each has written, before it is used.
    `from_start`: no rank can have communicated before, so that all count steps alike.
    """

    def __init__(self) -> None:
        c10d: Any = sys.modules.get(C10D)
        self.kept: dict[int, Call] = {}
        self.newest: dict[tuple[str, bool], Call] = {}
        self.last: deque[Call] = deque(maxlen=MAX_KEPT)
        self.step = 0
        self.from_start = c10d is None or not c10d.is_initialized()
        self.entered: list[Callable[[Call], object]] = []
        self.taken: list[Callable[[Call, list[Any]], object]] = []
        self._bytes = 0
        self._order = count()
        self._numbers: dict[tuple[str, bool], count[int]] = {}
        self._uncounted: set[str] = set()
        if c10d is not None:
            self._process_group, self._work = c10d.ProcessGroup, c10d.Work

    def enter(self, name: str, at: int, arguments: tuple[Any, ...]) -> Call:
        """Note that a call begins; `at`: the place of its group among the arguments."""
        order, operator = self._turn(), OPERATORS[name]
        group = self._process_group.unbox(arguments[at])
        key = str(group.group_name), operator.is_p2p
        if key not in self._numbers:
            so_far = _so_far(group, operator.is_p2p)
            if so_far is None and not self.from_start:
                self._uncounted.add(key[0])
            self._numbers.setdefault(key, count(1 + (so_far or 0)))
        call = Call(name, (key[0], str(group.group_desc)), next(self._numbers[key]))
        if operator.peer != NONE:
            call.peer = int(arguments[operator.peer])
        if operator.even:
            places = [at for at in (operator.input, operator.output) if at != NONE]
            tensor = next(tensors_in([arguments[at] for at in places]), None)
            if tensor is not None:
                call.shape, call.dtype = tuple(tensor.shape), tensor.dtype
        call.bytes = sum(int(tensor.nbytes) for tensor in tensors_in(arguments[:2]))
        return self._add(order, key, call)

    def _turn(self) -> int:
        order = next(self._order)
        self._clear(LOOKED_AT if order % WHOLE_EVERY else sys.maxsize)
        return order

    def _add(self, order: int, key: tuple[str, bool], call: C) -> C:
        call.place = place_of(users_frame(3))
        call.step = self.step
        self.newest[key] = self.kept[order] = call
        self.last.append(call)
        for tell in self.entered:
            tell(call)
        return call

    def leave(self, call: Call, result: Any) -> None:
        """Note that the backend has taken a call, and what it has returned."""
        work = result[-1] if isinstance(result, (list, tuple)) and result else result
        fits = len(self.kept) <= MAX_KEPT and self._bytes + call.bytes <= MAX_KEPT_BYTES
        if hasattr(work, "_type") and (fits or not self._bytes):
            call.work = self._work.unbox(work)
            self._bytes += call.bytes
        else:
            call.written = []

    def collectives(self, group: str) -> int | None:
        """Return how many a group has begun, as many in all its ranks; None: that is not known."""
        newest = self.newest.get((group, False))
        return newest.number if newest is not None and group not in self._uncounted else None

    def waited(self, work: Any = None, output: int = 0) -> None:
        """Note that somebody has waited for a work, or for that which writes to an address."""
        for order, call in [*self.kept.items()]:
            writes = output and output in map(_address, call.written)
            if call.work is not None and (call.work is work or writes):
                self._end(order, looks=True)

    def look(self) -> None:
        """Hash what complete calls have written, such as DDP's buckets, before a step uses it.

        DDP waits for futures, which gloo completes a moment before their works.
        """
        self._clear(sys.maxsize)
        for call in [*self.kept.values()]:
            if call.written and call.work is not None and _is_done(call.work):
                call.look()

    def _end(self, order: int, *, looks: bool) -> None:
        call = self.kept.pop(order, None)
        if call is not None:  # else another thread was faster
            self._bytes -= call.bytes if call.work is not None else 0
            for take in self.taken:
                take(call, call.written)
            call.end(looks=looks)

    def _clear(self, most: int) -> None:
        """Let go of complete works, until so many have been found open."""
        for order, call in [*self.kept.items()]:
            if call.is_open:
                most -= 1
                if not most:
                    return
            else:
                self._end(order, looks=call.step == self.step)
        if most > WHOLE_EVERY:  # threads that count at once lose some
            self._bytes = sum(call.bytes for call in [*self.kept.values()] if call.work is not None)


class Watching:
    """Wrappers around the calls of a library.

    `mode`: what is looked at, and may change: `time` nothing, `finite` inputs, `hash` inputs and,
    once somebody has waited for them, outputs. `sending`: who is told of a call and its inputs that
    are not finite, before they are sent.
    """

    misses: str
    """Names what is left out of the record if the library is not as expected."""

    def __init__(self, record: Record, mode: str, log: Callable[[str], object]) -> None:
        self.record = record
        self.mode = mode
        self.sending: list[Callable[[Any, list[Any]], object]] = []
        self.taker: Any = None
        self._log: Callable[[str], object] | None = log

    def guarded(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call this; the program goes on."""
        try:
            function(*arguments)
        except Exception as error:  # noqa: BLE001
            self.fails(error)

    def fails(self, error: Exception) -> None:
        """Say once that something is not as expected; the program goes on."""
        log, self._log = self._log, None
        if log is not None:
            log(f"misses {self.misses}: {type(error).__name__}: {error}")


def _is_done(work: Any) -> bool:
    try:
        return bool(work.get_future().done())
    except RuntimeError:  # gloo's reduce-scatter has none
        return False


def _address(tensor: Any) -> int:
    return int(tensor.data_ptr())


def _so_far(group: Any, p2p: bool) -> int | None:
    """How many collectives a group has had before it was first seen, by its backend's count."""
    try:
        return 0 if p2p else int(group._get_sequence_number_for_group())  # noqa: SLF001
    except RuntimeError:  # a backend without it
        return None


_users: dict[str, bool] = {}


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's code, from one on outwards."""
    left = MAX_FRAMES
    while frame is not None and left:
        path = frame.f_code.co_filename
        if path not in _users:
            _users[path] = not is_library(path)
        if _users[path]:
            return frame
        frame, left = frame.f_back, left - 1
    return None


def outer_frame(depth: int) -> FrameType | None:
    """Return the frame so many calls out of the caller's.

    Where C++ has called, as autograd's threads for GPUs do, the main thread's, which waits for it.
    """
    try:
        return sys._getframe(depth + 1)  # noqa: SLF001
    except ValueError:
        return _main_frame()


def users_frame(depth: int = 0) -> FrameType | None:
    """Return the innermost frame of the user's code, from so many calls out of the caller's.

    In a thread of autograd it is that of the main thread, which waits in `backward()`.
    """
    found = user_frame(outer_frame(depth + 1))
    return user_frame(_main_frame()) if found is None and in_backward() else found


def _main_frame() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001


def in_backward() -> bool:
    """Whether autograd has called this thread."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch._C._current_graph_task_id() != -1  # noqa: SLF001


def place_of(frame: FrameType | None) -> str:
    """Return `path:line function` of the innermost frame of the user's code, "" for none."""
    found = user_frame(frame)
    if found is None:
        return ""
    return f"{found.f_code.co_filename}:{found.f_lineno} {found.f_code.co_name}"


def is_library(path: str) -> bool:
    """Whether a source file is of Python, of a package that is installed, or of ours."""
    folders = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    return path.startswith(("<frozen", *folders, ours)) or any(one in path for one in LIBRARIES)
