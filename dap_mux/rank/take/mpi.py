"""Keeps what a rank receives by mpi4py in its file, and answers a replay from there.

A program that is replayed initialises MPI alone, as a job of one process.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.mpi import METHODS, MPI, MpiRecord, array_of, replace, replace_all, sent_of
from dap_mux.rank.comm.operators import NONE
from dap_mux.rank.take.rank_file import MAKING
from dap_mux.rank.take.replayer import Parted

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

    from dap_mux.rank.comm.mpi import Method, MpiCall, MpiWatch
    from dap_mux.rank.take.recorder import Recorder
    from dap_mux.rank.take.replayer import Replayer

SEVERAL = ("Waitall", "waitall", "Testall", "Waitany", "Waitsome")
WAITING = ("Wait", "wait", "Test", "test", *SEVERAL)
UNKNOWN = (
    "Probe Iprobe probe iprobe Mprobe Improbe mprobe improbe Create Create_group Create_cart "
    "Create_graph Create_dist_graph Create_dist_graph_adjacent Spawn Connect Accept Alltoallw "
    "Gatherv_init Neighbor_allgather neighbor_allgather Send_init Recv_init Merge"
).split()
"""Calls that a replay could not answer: it ends there, as MPI alone would wait for ever."""
STATUS = struct.Struct("!qqq")
"""The last part of what a call has received, where it was asked: from whom, its tag, its bytes."""


class MpiTaker:
    """Follows a watch on mpi4py (`MpiWatch.taker`), and the requests that it returns."""

    def __init__(self, recorder: Recorder, watch: MpiWatch) -> None:
        self._recorder, self._record = recorder, watch.record
        self._mpi: Any = sys.modules[MPI]
        self._open: list[tuple[Any, MpiCall, Method, dict[str, Any]]] = []
        replace_all((self._mpi.Comm, self._mpi.Intracomm), MAKING, self._making)
        replace_all((self._mpi.Request,), WAITING, self._waiting)

    def enter(self, call: MpiCall, given: dict[str, Any], method: Method) -> None:
        """A call begins."""
        self._recorder.begin(call, outputs_of(given, method), carrier=MPI)

    def left(self, call: MpiCall, method: Method, given: dict[str, Any], result: Any) -> None:
        """A call has returned, a request where it is not over yet."""
        if isinstance(result, self._mpi.Request):
            if method.output != "-" or call.operator == "irecv":
                self._open.append((result, call, method, given))
                return
            result = None
        self._over(call, method, given, result, given.get("status"))

    def _over(
        self, call: MpiCall, method: Method, given: dict[str, Any], result: Any, status: Any
    ) -> None:
        parts = [payload(call.operator, method, given, result)]
        if status is not None:
            size = status.Get_count(self._mpi.BYTE)
            parts.append(STATUS.pack(status.Get_source(), status.Get_tag(), max(size, 0)))
        self._recorder.write(call, parts)

    def _making(self, name: str, theirs: Any) -> Callable[..., Any]:
        def make(comm: Any, *arguments: Any, **named: Any) -> Any:
            call = self._record.begin(name, comm, NONE)
            self._recorder.begin(call, [], carrier=MPI)
            made = theirs(comm, *arguments, **named)
            self._record.end(call, None)
            said = self._record.name_of(made) if made != self._mpi.COMM_NULL else ()
            self._recorder.write(call, [json.dumps(said).encode()])
            return made

        return make

    def _waiting(self, name: str, theirs: Any) -> Any:
        several = name in SEVERAL
        method = theirs.__get__(None, self._mpi.Request) if several else theirs

        def wait(first: Any, *arguments: Any, **named: Any) -> Any:
            result = method(first, *arguments, **named)
            given = next(iter((*arguments, *named.values())), None)
            status = given if isinstance(given, self._mpi.Status) else None
            for one in [each for each in self._open if not each[0]]:  # it has become a null request
                self._open.remove(one)
                got = result[1] if isinstance(result, tuple) else result
                if isinstance(got, list):
                    got = next((r for q, r in zip(first, got) if q is one[0]), None)  # noqa: B905
                self._over(one[1], one[2], one[3], got, status)
            return result

        return staticmethod(wait) if several else wait


class MpiReplayer:
    """Stands before mpi4py's methods in place of the watch, and answers from the file."""

    def __init__(self, replayer: Replayer, rank: int, world: int) -> None:
        self._replayer, self._world_rank = replayer, rank
        self._mpi: Any = sys.modules[MPI]
        self._record = MpiRecord()
        everybody = ",".join(map(str, range(world)))
        known = self._record.names
        known[int(self._mpi.COMM_WORLD.py2f())] = self._mpi.COMM_WORLD.Get_name(), everybody
        known[int(self._mpi.COMM_SELF.py2f())] = self._mpi.COMM_SELF.Get_name(), str(rank)
        self._answered = self._requests()
        kinds = (self._mpi.Comm, self._mpi.Intracomm)
        replace_all(kinds, METHODS, self._answering)
        replace_all(kinds, MAKING, self._making)
        replace_all(kinds, UNKNOWN, _refusing)
        self._answer_who()

    def _answer_who(self) -> None:
        record, world_rank = self._record, self._world_rank

        def members(comm: Any) -> list[int]:
            return [*map(int, record.name_of(comm)[1].split(","))]

        def rank(comm: Any) -> int:
            return members(comm).index(world_rank)

        def size(comm: Any) -> int:
            return len(members(comm))

        for ask in (rank, size):
            replace(self._mpi.Comm, f"Get_{ask.__name__}", ask)
            replace(self._mpi.Comm, ask.__name__, property(ask))

    def _answering(self, name: str, _: Any) -> Callable[..., Any]:
        described = METHODS[name]

        def call(comm: Any, *arguments: Any, **named: Any) -> Any:
            given = described.given(arguments, named)
            one = self._record.begin(name, comm, int(given.get(described.peer, NONE)))
            sent = sent_of(described, given, comm, self._mpi.IN_PLACE)
            sends = [] if sent is None else [one.digest(sent)]
            outputs = outputs_of(given, described)
            parts = self._replayer.answer(one, lambda: sends, outputs, carrier=MPI)
            one.returned = True
            if name[0] in "Ii":
                return self._answered(one, described, given, parts)
            return self._give(one, described, given, parts)

        return call

    def _give(
        self, call: MpiCall, method: Method, given: dict[str, Any], parts: list[bytes] | None
    ) -> Any:
        if parts is None:
            raise Parted(f"here the record ends: call {call.number} of {call.group[0]}")
        status = given.get("status")
        if status is not None and len(parts) > 1:
            source, tag, size = STATUS.unpack(parts[1])
            status.Set_source(source)
            status.Set_tag(tag)
            status.Set_elements(self._mpi.BYTE, size)
        if call.operator[0].islower():
            if method.root and call.operator == "bcast" and given.get("obj") is not None:
                return given["obj"]  # the root's own object, not another that is like it
            return self._mpi.pickle.loads(parts[0]) if parts[0] else None
        if parts[0]:
            memoryview(array_of(given[method.output])).cast("B")[:] = parts[0]
        return None

    def _making(self, name: str, theirs: Any) -> Callable[..., Any]:
        def make(comm: Any, *arguments: Any, **named: Any) -> Any:
            call = self._record.begin(name, comm, NONE)
            parts = self._replayer.answer(call, list, [], carrier=MPI)
            made = theirs(comm, *arguments, **named)
            said = json.loads(parts[0]) if parts else []
            if len(said) == 2 and made != self._mpi.COMM_NULL:
                self._record.names[int(made.py2f())] = str(said[0]), str(said[1])
            return made

        return make

    def _requests(self) -> Any:
        """Return the type of the requests that are answered; several are waited for one by one."""
        request, give = self._mpi.Request, self._give

        def init(answered: Any, *answer: Any) -> None:
            answered.answer = answer

        def wait(answered: Any, status: Any = None) -> Any:
            answer, answered.answer = answered.answer, None
            if answer is None:
                return None
            call, method, given, parts = answer
            return give(call, method, {**given, "status": status}, parts)

        def done(answered: Any, status: Any = None) -> bool:
            wait(answered, status)
            return True

        members: dict[str, Any] = {
            "__new__": lambda kind, *_: request.__new__(kind),
            "__init__": init,
            "wait": wait,
            "Wait": done,
            "Test": done,
            "test": lambda answered, status=None: (True, wait(answered, status)),
        }
        self._several(request, wait)
        return type("Answered", (request,), members)

    def _several(self, request: Any, wait: Callable[..., Any]) -> None:
        def wait_all(requests: Any, statuses: Any = None) -> list[Any]:
            places = statuses or [None] * len(requests)
            return [wait(each, place) for each, place in zip(requests, places)]  # noqa: B905

        def all_done(requests: Any, statuses: Any = None) -> bool:
            wait_all(requests, statuses)
            return True

        replace(request, "waitall", staticmethod(wait_all))
        for name in ("Waitall", "Testall"):
            replace(request, name, staticmethod(all_done))
        for name in ("Waitany", "Waitsome", "Testany", "Testsome", "waitany", "waitsome"):
            replace(request, name, staticmethod(_refusing(name)))


def _refusing(name: str, _: Any = None) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Parted(f"{name} of mpi4py is not in a rank's file: a replay cannot answer it")

    return refuse


def outputs_of(given: dict[str, Any], method: Method) -> list[list[Any]]:
    """Return type and bytes of the buffer that a call receives into."""
    received = array_of(given.get(method.output)) if method.output not in ("", "-") else None
    if received is None:
        return []
    return [[type(received).__name__, [memoryview(received).nbytes]]]


def payload(name: str, method: Method, given: dict[str, Any], result: Any) -> bytes:
    """Return what a call has received, as bytes."""
    if name[0].islower():
        return b"" if result is None else bytes(sys.modules[MPI].pickle.dumps(result))
    received = array_of(given.get(method.output)) if method.output not in ("", "-") else None
    return b"" if received is None else memoryview(received).tobytes()
