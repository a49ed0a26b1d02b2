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
    """A kind of fault; any of `verdicts` is right."""

    what: str
    verdicts: tuple[str, ...]
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
    "skipped": Kind("leaves out one all-reduce", MISMATCH),
    "extra": Kind("takes part in one all-reduce too many", MISMATCH),
    "swapped": Kind("calls the barrier before the all-reduce", MISMATCH),
    "other-kind": Kind("calls another collective than the others", MISMATCH, ("gloo", "mpi")),
    # gloo aborts these two, because it receives too much.
    "wrong-shape": Kind(
        "reduces a tensor half as long", ("mismatched-collective", "process-gone"), TORCH
    ),
    "wrong-dtype": Kind(
        "reduces float16 where the others have float32",
        ("mismatched-collective", "process-gone"),
        TORCH,
    ),
    "sub-group": Kind(
        "reduces over all before its sub-group, the others after it", MISMATCH, suspect="group"
    ),
    "recv-before-send": Kind("all receive before they send", ("p2p-cycle",), suspect="all"),
    "recv-pair": Kind("two neighbours receive from each other", ("p2p-cycle",), suspect="pair"),
    "send-left-out": Kind(
        "does not send, its neighbour receives",
        ("p2p-cycle", "mismatched-collective"),
        suspect="either",
    ),
    "killed": Kind("is killed by SIGKILL", ("process-gone",)),
    "exits": Kind("ends by os._exit(3)", ("process-gone",)),
    "out-of-memory": Kind(
        "uses more memory than its control group may", ("process-gone",), ("socket",)
    ),
    "stopped-process": Kind("is stopped by SIGSTOP", ("process-stopped",)),
    "gil-asleep": Kind("calls a C function that keeps the GIL and sleeps", ("gil-held",)),
    "gil-busy": Kind("matches a regular expression for ever", ("gil-held",)),
    "lock-cycle": Kind("two of its threads take two locks in different order", ("lock-cycle",)),
    "lock-twice": Kind("takes a lock that it holds", ("lock-cycle",)),
    "loader-asleep": Kind("its data loader sleeps", ("input-starved",)),
    "loader-gone": Kind("its data loader's thread has ended", ("input-starved",), OWN_LOADER),
    "loader-disk": Kind("its data loader waits for the disk", ("input-starved", "blocked-io")),
    "slow-disk": Kind("reads a file whose data does not come", IO),
    "file-lock": Kind("waits for a file that another process has locked", IO),
    "fetch": Kind("asks a web server that does not answer", IO),
    "prompt": Kind("asks a question on its standard input", IO),
    "child-process": Kind("waits for a command that does not end", ("not-joined",)),
    "asleep": Kind("sleeps", ("not-joined",)),
    "spinning": Kind("is in a loop that does not end", SLOW),
    "native-work": Kind("works in C, without the GIL, for hours", SLOW),
    "exception": Kind(
        "has caught an exception, and waits for the others in the handler", ("exception-held",)
    ),
    "main-ended": Kind("its main thread has ended, another one has not", ("teardown",)),
    "exit-hook": Kind(
        "waits in a function of atexit, after the job's end", ("teardown",), ("socket", "gloo")
    ),
    "early-end": Kind(
        "has fewer batches, and ends before the others", ("teardown", "mismatched-collective")
    ),
    "paused": Kind("is paused by a debugger", ("held-by-debugger",)),
    "breakpoint": Kind("is at a breakpoint", ("held-by-debugger",)),
    "pdb": Kind("is in a pdb that nobody sees", ("held-by-debugger",)),
    "never-joins": Kind("waits for a file before it meets the others", ("not-joined",)),
    "healthy": Kind("nothing", ("healthy",), suspect="none"),
    "healthy-long-steps": Kind("steps of 0.6 s", ("healthy",), suspect="none"),
    "healthy-busy": Kind("works in each step, in Python", ("healthy",), suspect="none"),
    "healthy-straggler": Kind(
        "is slower than the others in each step", ("healthy",), suspect="none"
    ),
    "healthy-slow-loader": Kind(
        "all wait for their loaders in each step", ("healthy",), suspect="none"
    ),
    "healthy-checkpoint": Kind(
        "one writes after each step, the others wait", ("healthy",), suspect="none"
    ),
}


def is_healthy(fault: str) -> bool:
    """Whether nothing is wrong with the job."""
    return fault.startswith(HEALTHY)
