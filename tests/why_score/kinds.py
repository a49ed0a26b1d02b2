"""The faults that are scored: in which jobs they exist, and what `why` should say of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Suspect = Literal["rank", "pair", "either", "group", "all", "none"]
"""Whom `why` should name: the rank with the fault, it and its right neighbour, it alone or both, it
alone or all of its sub-group, all ranks, or nobody."""
ALL: Final = ("socket", "gloo", "mpi")
HEALTHY: Final = "healthy"


@dataclass(frozen=True)
class Kind:
    """A kind of fault; any of `verdicts` is right. `shown_by`: what tells it from others."""

    what: str
    verdicts: tuple[str, ...]
    shown_by: str
    jobs: tuple[str, ...] = ALL
    suspect: Suspect = "rank"

    @property
    def several(self) -> bool:
        """Whether more than one rank may be to blame."""
        return self.suspect not in ("rank", "none")

    def culprits(self, rank: int, size: int) -> Sequence[frozenset[int]]:
        """Return the sets of ranks that are right."""
        pair = frozenset((rank, (rank + 1) % size))
        found: dict[Suspect, Sequence[frozenset[int]]] = {
            "rank": [frozenset((rank,))],
            "pair": [pair],
            "group": [frozenset((rank,)), frozenset(range(rank % 2, size, 2))],
            "either": [frozenset((rank,)), pair],
            "all": [frozenset(range(size))],
            "none": [frozenset()],
        }
        return found[self.suspect]


MISMATCH: Final = ("mismatched-collective",)
IO: Final = ("blocked-io",)
TORCH: Final = ("gloo",)
SLOW: Final = ("slow-rank",)
OWN_LOADER: Final = ("socket", "mpi")

KINDS: Final[Mapping[str, Kind]] = {
    "skipped": Kind(
        "leaves out one all-reduce",
        MISMATCH,
        "it is in the barrier that follows, the others are in the all-reduce",
    ),
    "extra": Kind(
        "takes part in one all-reduce too many",
        MISMATCH,
        "it is in an all-reduce, the others are in the barrier that follows",
    ),
    "swapped": Kind(
        "calls the barrier before the all-reduce",
        MISMATCH,
        "it is in a barrier, the others are in the all-reduce",
    ),
    "other-kind": Kind(
        "calls another collective than the others",
        MISMATCH,
        "the same number in the group, but another kind",
        ("gloo", "mpi"),
    ),
    "wrong-shape": Kind(
        "reduces a tensor half as long",
        ("mismatched-collective", "process-gone"),
        "gloo aborts it, because it receives too much",
        TORCH,
    ),
    "wrong-dtype": Kind(
        "reduces float16 where the others have float32",
        ("mismatched-collective", "process-gone"),
        "gloo aborts it, because it receives too much",
        TORCH,
    ),
    "sub-group": Kind(
        "reduces over all before its sub-group, the others after it",
        MISMATCH,
        "it is in the reduction over all while its sub-group waits for it",
        suspect="group",
    ),
    "recv-before-send": Kind(
        "all receive before they send",
        ("p2p-cycle",),
        "each is in a receive from its left neighbour",
        suspect="all",
    ),
    "recv-pair": Kind(
        "two neighbours receive from each other",
        ("p2p-cycle",),
        "the receives of the two name each other",
        suspect="pair",
    ),
    "send-left-out": Kind(
        "does not send, its neighbour receives",
        ("p2p-cycle", "mismatched-collective"),
        "its neighbour is in a receive from it, it is in a collective",
        suspect="either",
    ),
    "killed": Kind(
        "is killed by SIGKILL",
        ("process-gone",),
        "its process is gone",
    ),
    "exits": Kind(
        "ends by os._exit(3)",
        ("process-gone",),
        "its process is gone",
    ),
    "out-of-memory": Kind(
        "uses more memory than its control group may",
        ("process-gone",),
        "its process is gone, and the kernel has recorded why",
        ("socket",),
    ),
    "stopped-process": Kind(
        "is stopped by SIGSTOP",
        ("process-stopped",),
        "its process is in state T",
    ),
    "gil-asleep": Kind(
        "calls a C function that keeps the GIL and sleeps",
        ("gil-held",),
        "it answers nothing, and its other threads ask for the GIL in turn",
    ),
    "gil-busy": Kind(
        "matches a regular expression for ever",
        ("gil-held",),
        "it answers nothing, its threads ask for the GIL, and one of them works",
    ),
    "lock-cycle": Kind(
        "two of its threads take two locks in different order",
        ("lock-cycle",),
        "each of two threads waits for a lock that the other's frames have taken",
    ),
    "lock-twice": Kind(
        "takes a lock that it holds",
        ("lock-cycle",),
        "its main thread waits for a lock that its own frame has taken",
    ),
    "loader-asleep": Kind(
        "its data loader sleeps",
        ("input-starved",),
        "its main thread is in a queue's get, its loader in time.sleep",
    ),
    "loader-gone": Kind(
        "its data loader's thread has ended",
        ("input-starved",),
        "its main thread is in a queue's get, and no thread fills the queue",
        OWN_LOADER,
    ),
    "loader-disk": Kind(
        "its data loader waits for the disk",
        ("input-starved", "blocked-io"),
        "its main thread is in a queue's get, its loader in read",
    ),
    "slow-disk": Kind(
        "reads a file whose data does not come",
        IO,
        "its main thread is in read, of a file",
    ),
    "file-lock": Kind(
        "waits for a file that another process has locked",
        IO,
        "its main thread is in flock",
    ),
    "fetch": Kind(
        "asks a web server that does not answer",
        IO,
        "its main thread is in a socket's recv below urlopen",
    ),
    "prompt": Kind(
        "asks a question on its standard input",
        IO,
        "its main thread is in input",
    ),
    "child-process": Kind(
        "waits for a command that does not end",
        ("not-joined",),
        "its main thread is in waitpid below subprocess.run",
    ),
    "asleep": Kind(
        "sleeps",
        ("not-joined",),
        "its main thread is in time.sleep, not in a collective",
    ),
    "spinning": Kind(
        "is in a loop that does not end",
        SLOW,
        "its main thread works in Python, not in a collective",
    ),
    "native-work": Kind(
        "works in C, without the GIL, for hours",
        SLOW,
        "its main thread works in C, not in a collective",
    ),
    "exception": Kind(
        "has caught an exception, and waits for the others in the handler",
        ("exception-held",),
        "its main thread is in a collective within an exception's handler",
    ),
    "main-ended": Kind(
        "its main thread has ended, another one has not",
        ("teardown",),
        "its main thread is in threading._shutdown",
    ),
    "exit-hook": Kind(
        "waits in a function of atexit, after the job's end",
        ("teardown",),
        "it is finalizing; the others have ended",
        ("socket", "gloo"),
    ),
    "early-end": Kind(
        "has fewer batches, and ends before the others",
        ("teardown", "mismatched-collective"),
        "it takes leave of the others, which are in the next step",
    ),
    "paused": Kind(
        "is paused by a debugger",
        ("held-by-debugger",),
        "it is stopped, by `pause`",
    ),
    "breakpoint": Kind(
        "is at a breakpoint",
        ("held-by-debugger",),
        "it is stopped at a breakpoint",
    ),
    "pdb": Kind(
        "is in a pdb that nobody sees",
        ("held-by-debugger",),
        "its main thread reads a command in pdb",
    ),
    "never-joins": Kind(
        "waits for a file before it meets the others",
        ("not-joined",),
        "the others wait in the connect or init_process_group, it does not",
    ),
    "healthy": Kind("nothing", ("healthy",), "all ranks go on", suspect="none"),
    "healthy-long-steps": Kind("steps of 0.6 s", ("healthy",), "all ranks go on", suspect="none"),
    "healthy-busy": Kind(
        "works in each step, in Python", ("healthy",), "all ranks go on", suspect="none"
    ),
    "healthy-straggler": Kind(
        "is slower than the others in each step", ("healthy",), "all ranks go on", suspect="none"
    ),
    "healthy-slow-loader": Kind(
        "all wait for their loaders in each step", ("healthy",), "all ranks go on", suspect="none"
    ),
    "healthy-checkpoint": Kind(
        "one writes after each step, the others wait", ("healthy",), "all go on", suspect="none"
    ),
}


def is_healthy(fault: str) -> bool:
    """Whether nothing is wrong with the job."""
    return fault.startswith(HEALTHY)
