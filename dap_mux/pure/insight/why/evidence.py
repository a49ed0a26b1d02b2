"""What is known of a job whose ranks may wait for each other: the input of every verdict.

`Sample` is what `injected/evidence` tells of a rank from inside, as JSON, or py-spy of one that
nobody has prepared; `Process` is what the system tells of it. Neither is there for every rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.rank_sets import RankId

# Tells files of libraries from the program's own, by their paths alone. In a checkout ours, which
# start each rank's program, are in no folder of packages.

_LIBRARY: Final = re.compile(
    r"[/\\]lib(?:64)?[/\\]python\d|site-packages|dist-packages|[/\\]dap_mux[/\\]rank[/\\]|^<frozen"
)


def is_library(path: str) -> bool:
    """Whether a file is the standard library's or an installed package's."""
    return _LIBRARY.search(path) is not None


class Call(Struct, frozen=True):
    """The call that a thread's innermost frame is in, where it is one of a function in C.

    `text`: as it is written, such as `comm.recv(source=left)`. `function`: the module and qualified
    name of what is called, such as `mpi4py.MPI.Comm.recv`, "" where that could not be found without
    running code of the program. `arguments`: by their names or places ("0", "1"), as far as they
    are numbers or short strings. `of`: the same of what the method belongs to, such as {"rank": 1}.
    """

    text: str
    function: str = ""
    arguments: dict[str, Any] = {}
    of: dict[str, Any] = {}


class Thread(Struct, frozen=True):
    """A thread at one moment.

    `frames`: the places of file and function in the sample's lists, and the line; outermost first.
    From the system: its `tid`, `state` (one letter as in proc(5)), `system_call` that it is in
    ("read") and the `file` of its descriptor; `cpu`: seconds used since it began, `switches`: how
    often it has given up its processor. `progress`: a digest of numbers among its variables, "" for
    unknown. `lock`: identity
    of the lock that it waits for, `owner`: the name of the thread that has it, as far as the lock
    itself says; `holds`: of the locks that its frames have taken by `with`. `handling`: the
    exception in whose handler it is. `owns_gil`: it had Python's global lock, as seen from outside.
    """

    name: str
    main: bool
    frames: list[tuple[int, int, int]]
    tid: int = 0
    state: str = ""
    system_call: str = ""
    file: str = ""
    cpu: float = 0.0
    switches: int = 0
    progress: str = ""
    call: Call | None = None
    lock: str = ""
    owner: str = ""
    holds: list[str] = []
    handling: str = ""
    owns_gil: bool = False


class Collective(Struct, frozen=True):
    """One entry of torch's flight recorder, or of a rank's own record of calls.

    `age`, `timeout` in seconds, `number` as of its group.
    `members`: the global ranks of the group, if known; `state`: scheduled, started or completed, or
    called: it has not returned. `age` is None where it is not known when the recorder was asked, as
    of one read from a file. `place`: the user's line that has called it, as `path:line function`,
    and `tid`, in which thread; "" and 0 for unknown.
    """

    group: str
    number: int
    kind: str
    members: list[int] = []
    p2p: bool = False
    sizes: list[list[int]] = []
    dtypes: list[str] = []
    state: str = ""
    age: float | None = 0.0
    timeout: float = 0.0
    place: str = ""
    tid: int = 0


class Child(Struct, frozen=True):
    """A process that a rank has started, by its main thread; `name`: its command line."""

    pid: int
    name: str = ""
    state: str = ""
    system_call: str = ""
    file: str = ""


class Sample(Struct, frozen=True):
    """A rank at one moment, told by itself. `files`: path, and whether it is a library's.

    `recorder`: `on`, `off`, or "" without torch; `collectives`: the newest of each group, the
    newest last. `calls`: the same by the rank's own record, the oldest open ones and the last of
    each group; None without that record. `world_rank`: torch's or MPI's own number, -1 for unknown.
    `children`: processes.
    """

    files: list[tuple[str, bool]]
    functions: list[str]
    threads: list[Thread]
    collectives: list[Collective] = []
    recorder: str = ""
    world_rank: int = -1
    finalizing: bool = False
    children: list[Child] = []
    calls: list[Collective] | None = None


class Process(Struct, frozen=True):
    """A rank's process, as the system shows it, `at` seconds by some clock.

    `state`: one letter as in proc(5), "" where there is no such process any more. `cpu`: seconds
    used. `connections`: the local and the remote address of each TCP connection, such as
    `127.0.0.1:5000`, by its name among the process's files (`socket:[81]`). `switches`: how often
    each thread has given up its processor. `out_of_memory`: the kernel has recorded that it killed
    this process for that.
    """

    pid: int
    state: str = ""
    cpu: float = 0.0
    connections: dict[str, tuple[str, str]] = {}
    switches: dict[int, int] = {}
    out_of_memory: bool = False
    at: float = 0.0


@dataclass(frozen=True)
class Standing:
    """What the session itself knows of a rank.

    `state` as in `list`; `stop`: why it stands in the debugger; `exit_code`: as of its process,
    negative for a signal; `problem`: why it told nothing. `breakpoint`: the one whose condition
    keeps it until the ranks `awaited` have come, such as `differ breakpoint at train.py:5`.
    """

    state: str = "running"
    stop: str = ""
    exit_code: int | None = None
    problem: str = ""
    breakpoint: str = ""
    awaited: tuple[RankId, ...] = ()


@dataclass(frozen=True)
class RankEvidence:
    """All that is known of one rank; `samples` and `processes` in the order of time."""

    rank: RankId
    standing: Standing = field(default_factory=Standing)
    samples: Sequence[Sample] = ()
    processes: Sequence[Process] = ()

    @property
    def last(self) -> Sample | None:
        """The newest sample."""
        return self.samples[-1] if self.samples else None


@dataclass(frozen=True)
class Evidence:
    """Of all ranks. `interval`: seconds between two samples."""

    ranks: Mapping[RankId, RankEvidence]
    interval: float = 0.3

    @property
    def by_calls(self) -> bool:
        """Whether each rank of torch has a record of its calls: it numbers them in its own way."""
        torch = [sample for one in self for sample in one.samples if sample.recorder]
        return bool(torch) and all(sample.calls is not None for sample in torch)

    def __iter__(self) -> Iterator[RankEvidence]:
        """Yield the ranks in order."""
        return iter(self.ranks[rank] for rank in sorted(self.ranks))


def continued(first: Evidence, later: Evidence, seconds: float) -> Evidence:
    """Return what is known by two inquiries, the second of which came `seconds` later."""
    ranks = {
        rank: RankEvidence(
            rank,
            one.standing,
            [*first.ranks[rank].samples, *one.samples],
            [*first.ranks[rank].processes, *one.processes],
        )
        for rank, one in later.ranks.items()
    }
    looks = max((len(one.samples) for one in first), default=1)
    return Evidence(ranks, (first.interval * (looks - 1) + seconds) / looks if looks else seconds)


class Names:
    """The files and functions of a sample, each of them listed once."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, bool], int] = {}
        self.functions: dict[str, int] = {}

    def place(self, path: str, function: str, line: int, *, library: bool) -> tuple[int, int, int]:
        """Return a frame as a sample has it."""
        return (
            self.files.setdefault((path, library), len(self.files)),
            self.functions.setdefault(function, len(self.functions)),
            line,
        )


def stack_of(sample: Sample, thread: Thread) -> Stack:
    """Return a thread's frames. Raises IndexError for a file or function that was not listed."""
    return tuple(
        Frame(sample.files[file][0], sample.functions[function], line, sample.files[file][1])
        for file, function, line in thread.frames
    )
