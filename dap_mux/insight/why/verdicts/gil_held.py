"""Code in C keeps Python's global lock, so that no other thread of the rank can run."""

from __future__ import annotations

from dap_mux.insight.why.picture import Picture
from dap_mux.insight.why.verdict import Verdict, ranks, suspects, who_waits

NAME = "gil-held"
LEAST_THREADS = 2
"""The debugger has several, which all want the lock; one thread may be busy with something else."""
STOPPED = frozenset("Tt")


def find(picture: Picture) -> Verdict | None:
    """A rank that tells nothing, though its process runs and its threads ask for the lock."""
    held = [
        one
        for one in picture.live
        if not one.told
        and not one.leaving
        and one.processes
        and one.processes[-1].state not in STOPPED
        and one.waiting_for_gil >= LEAST_THREADS
    ]
    if not held:
        return None
    process = held[0].processes[-1]
    return Verdict(
        NAME,
        f"{ranks(held)}: a call into C holds Python's global lock (GIL), and nothing else runs",
        suspects(held, picture),
        (
            f"it answers nothing, and {held[0].waiting_for_gil} of its threads ask for the lock",
            *who_waits(picture),
        ),
        f"gdb -p {process.pid} -batch -ex 'thread apply all bt'",
    )
