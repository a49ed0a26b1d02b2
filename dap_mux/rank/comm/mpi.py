"""The calls of mpi4py's communicators: those with buffers, and those with objects.

An extension type takes no attributes, so its dict is changed itself: communicators that a program
has made already are seen too, and are of the type that they were of.
"""

from __future__ import annotations

import cmath
import ctypes
import gc
import pickle
import sys
from hashlib import blake2b
from itertools import count
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from dap_mux.rank.comm.operators import NONE
from dap_mux.rank.comm.record import MAX_KEPT, Call, Record, Watching

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Iterable

MPI = "mpi4py.MPI"
FLOATS = "fd"


class Method(NamedTuple):
    """One method. `names`: of its first parameters; the others: those of its buffers or objects.

    `output`: "" where its result is what was received, "-" for none. `root`: only that rank's input
    counts.
    """

    names: tuple[str, ...]
    input: str = ""
    output: str = ""
    peer: str = ""
    root: bool = False

    def given(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Return a call's arguments by their names, those behind `names` but for a status."""
        found = dict(zip(self.names, arguments))  # noqa: B905  (Python 3.8)
        found.update(("status", each) for each in arguments if type(each).__name__ == "Status")
        return {**found, **named}


_EXCHANGE = ("dest", "sendtag", "recvbuf", "source")
_ROOTED = ("sendbuf", "recvbuf", "root")
_BOTH = Method(("sendbuf", "recvbuf"), "sendbuf", "recvbuf")
_KINDS = {
    "Barrier barrier Ibarrier": Method(()),
    "Send Ssend Bsend Rsend Isend Issend Ibsend Irsend": Method(
        ("buf", "dest"), "buf", "-", "dest"
    ),
    "send ssend bsend isend issend ibsend": Method(("obj", "dest"), "obj", "-", "dest"),
    "Recv Irecv": Method(("buf", "source"), "", "buf", "source"),
    "recv": Method(("buf", "source"), peer="source"),
    "irecv": Method(("buf", "source"), "", "-", "source"),
    "Sendrecv Isendrecv": Method(("sendbuf", *_EXCHANGE), "sendbuf", "recvbuf", "dest"),
    "sendrecv": Method(("sendobj", *_EXCHANGE), "sendobj", peer="dest"),
    "Bcast Ibcast": Method(("buf", "root"), "buf", "buf", root=True),
    "bcast": Method(("obj", "root"), "obj", root=True),
    "Allgather Allgatherv Alltoall Alltoallv Allreduce Scan Exscan": _BOTH,
    "Iallgather Iallgatherv Ialltoall Ialltoallv Iallreduce Iscan Iexscan": _BOTH,
    "Reduce_scatter Reduce_scatter_block Ireduce_scatter Ireduce_scatter_block": _BOTH,
    "allgather alltoall allreduce scan exscan": Method(("sendobj",), "sendobj"),
    "Gather Gatherv Igather Igatherv": Method(_ROOTED, "sendbuf", "recvbuf"),
    "Scatter Scatterv Iscatter Iscatterv": Method(_ROOTED, "sendbuf", "recvbuf", root=True),
    "Reduce Ireduce": _BOTH,
    "gather reduce": Method(("sendobj",), "sendobj"),
    "scatter": Method(("sendobj", "root"), "sendobj", root=True),
}
METHODS = {name: method for names, method in _KINDS.items() for name in names.split()}


class MpiCall(Call):
    """One call; `operator` is the method's name, `finite` is False for an input that is not."""

    __slots__ = ("finite", "order")

    def __init__(self, name: str, group: tuple[str, str], number: int) -> None:
        super().__init__(name, group, number)
        self.finite = True
        self.order = 0

    @property
    def kind(self) -> str:
        """The method's name."""
        return self.operator

    @property
    def ranks(self) -> list[int]:
        """The ranks of its communicator in COMM_WORLD."""
        return [*map(int, self.group[1].split(","))]

    @property
    def is_open(self) -> bool:
        """Whether it has not returned, or its request has not been waited for."""
        return not self.returned or bool(self.work)  # a request that is over is MPI_REQUEST_NULL

    def digest(self, value: Any) -> str:
        """Return 16 hexadecimal digits of a buffer's bytes, or of an object as it is pickled."""
        if self.operator[0].islower():
            content: Any = pickle.dumps(value)
        else:
            content = memoryview(array_of(value))
            content = content if content.c_contiguous else content.tobytes()
        return blake2b(content, digest_size=8).hexdigest()


class MpiRecord(Record):
    """The calls of this process by MPI; `names`: of communicators, by their handles."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[int, tuple[str, str]] = {}

    def name_of(self, comm: Any) -> tuple[str, str]:
        """Return a communicator's name, and its ranks in COMM_WORLD."""
        handle = int(comm.py2f())
        if handle not in self.names:
            mpi: Any = sys.modules[MPI]
            group, world = comm.Get_group(), mpi.COMM_WORLD.Get_group()
            ranks = mpi.Group.Translate_ranks(group, [*range(group.Get_size())], world)
            members = ",".join(map(str, ranks))
            like = sum(known == members for _, known in self.names.values())
            given = comm.Get_name() or f"ranks {members}" + (f" #{like + 1}" if like else "")
            self.names[handle] = given, members
        return self.names[handle]

    def begin(self, name: str, comm: Any, peer: int) -> MpiCall:
        """Note that a call begins."""
        order, group = self._turn(), self.name_of(comm)
        key = group[0], name in METHODS and bool(METHODS[name].peer)
        call = MpiCall(name, group, next(self._numbers.setdefault(key, count(1))))
        call.order, call.peer = order, max(peer, NONE)  # MPI's numbers for any source are lower
        return self._add(order, key, call)

    def end(self, call: MpiCall, request: Any) -> None:
        """Note that it has returned; `request`: what is to be waited for, None for nothing."""
        call.work, call.returned = request, True
        if len(self.kept) > MAX_KEPT and request is not None:
            call.work, call.written = None, []  # whether it is open is not known
        if call.work is None:
            self._end(call.order, looks=True)


class MpiWatch(Watching):
    """Wrappers around the methods of communicators, until `end`."""

    misses = "calls of mpi4py"
    record: MpiRecord

    def __init__(self, mode: str, log: Callable[[str], object]) -> None:
        super().__init__(MpiRecord(), mode, log)
        mpi: Any = sys.modules[MPI]
        self._request, self._in_place = mpi.Request, mpi.IN_PLACE
        kinds = (mpi.Comm, mpi.Intracomm)
        self._theirs = replace_all(kinds, METHODS, self._watched)
        self._theirs += replace_all(kinds, ("Free", "Disconnect", "free"), self._freed)

    def _watched(self, name: str, method: Any) -> Callable[..., Any]:
        described = METHODS[name]

        def call(comm: Any, *arguments: Any, **named: Any) -> Any:
            one, given = None, {}
            try:
                given = described.given(arguments, named)
                one = self.record.begin(name, comm, int(given.get(described.peer, NONE)))
                self._look(one, described, given, comm)
                if self.taker is not None:
                    self.taker.enter(one, given, described)
            except Exception as error:  # noqa: BLE001  (the program's call goes on)
                self.fails(error)
            try:
                result = method(comm, *arguments, **named)
            except BaseException:
                if one is not None:
                    one.returned = True
                raise
            if one is not None:
                self.guarded(self._over, one, described, given, result)
            return result

        return call

    def _look(self, call: MpiCall, method: Method, given: dict[str, Any], comm: Any) -> None:
        sent, received = sent_of(method, given, comm, self._in_place), given.get(method.output)
        array = array_of(received if sent is None else sent)
        if array is not None:
            call.shape = tuple(getattr(array, "shape", ()))
            call.dtype = getattr(array, "dtype", type(array).__name__)
        if self.mode in ("hash", "take"):
            call.inputs = [] if sent is None else [call.digest(sent)]
            call.written = [] if received is None else [received]
        if sent is not None and (self.mode == "finite" or self.sending):
            call.finite = is_finite(array_of(sent))
            for tell in [*self.sending] if not call.finite else ():
                tell(call, [sent])

    def _over(self, call: MpiCall, method: Method, given: dict[str, Any], result: Any) -> None:
        if self.taker is not None:
            self.taker.left(call, method, given, result)
        request = result if isinstance(result, self._request) else None
        if self.mode == "hash" and not method.output and result is not None:
            call.written = [] if request is not None else [result]
        self.record.end(call, request)

    def _freed(self, _: str, method: Any) -> Callable[..., Any]:
        def free(comm: Any, *arguments: Any, **named: Any) -> Any:
            # MPI gives the handle to another.
            self.guarded(lambda: self.record.names.pop(int(comm.py2f()), None))
            return method(comm, *arguments, **named)

        return free

    def end(self) -> None:
        """Give mpi4py its own methods back."""
        for kind, name, method in self._theirs:
            replace(kind, name, method)


def names_of(kind: Any) -> dict[str, Any]:
    """Return the dict of an extension type. Raises StopIteration where Python hides it."""
    return next(each for each in gc.get_referents(kind.__dict__) if type(each) is dict)


def replace(kind: Any, name: str, made: Any) -> None:
    """Put another method in the place of an extension type's."""
    names_of(kind)[name] = made
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def replace_all(
    kinds: Iterable[Any], names: Iterable[str], make: Callable[[str, Any], Any]
) -> list[tuple[Any, str, Any]]:
    """Replace those methods that there are by what `make` makes of a name and the method.

    Return each type, name and method that was there.
    """
    theirs = [
        (kind, name, names_of(kind)[name])
        for kind in kinds
        for name in {*names} & {*names_of(kind)}
    ]
    for kind, name, method in theirs:
        replace(kind, name, make(name, method))
    return theirs


def sent_of(method: Method, given: dict[str, Any], comm: Any, in_place: Any) -> Any:
    """Return the buffer or the object that a call sends, None where it sends none."""
    sent = given.get(method.input)
    if method.root and comm.Get_rank() != int(given.get("root", 0)):
        return None
    return given.get(method.output) if sent is in_place else sent


def array_of(value: Any) -> Any:
    """Return what a buffer's specification, such as `[array, count, type]`, is of."""
    is_specification = isinstance(value, (list, tuple)) and value and hasattr(value[0], "__len__")
    return value[0] if is_specification else value


def counts_of(sent: Any) -> tuple[int, int, int]:
    """Return how many numbers of a buffer or object are NaN, infinite, and there at all."""
    array = array_of(sent)
    if isinstance(array, float):
        numbers = [array]
    elif hasattr(array, "ravel"):
        numbers = array.ravel().tolist()
    else:
        view: Any = memoryview(array)
        numbers = view.cast("B").cast(view.format).tolist()
    return sum(map(cmath.isnan, numbers)), sum(map(cmath.isinf, numbers)), len(numbers)


def is_finite(array: Any) -> bool:
    """Whether no number of a buffer, or no number that is sent as an object, is NaN or infinite."""
    if isinstance(array, float):
        return isfinite(array)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray):
        return array.dtype.kind not in "fc" or bool(numpy.isfinite(array).all())
    try:
        view = memoryview(array)
    except TypeError:
        return True
    if view.format not in FLOATS or not view.contiguous:
        return True
    numbers: Any = view.cast("B")
    return all(map(isfinite, numbers.cast(view.format)))
