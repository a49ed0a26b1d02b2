"""A rank waits for a disk or a file."""

from __future__ import annotations

from dap_mux.insight.why.evidence import Thread
from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import (
    DISK,
    Verdict,
    has_not_reached,
    in_the_kernel,
    look_at,
    place,
    ranks,
    suspects,
)
from dap_mux.insight.why.waits import NETWORK_CALLS

NAME = "blocked-io"
FILE_CALLS = frozenset({
    "fdatasync", "flock", "fsync", "open", "openat", "pread64", "preadv", "pwrite64", "read",
    "readv", "write", "writev",
})  # fmt: skip


def find(picture: Picture) -> Verdict | None:
    """It counts if it has been there all the time, and keeps others waiting, or all are there."""
    blocked = [one for one in picture.elsewhere if one.steady and all(map(_blocked, one.threads))]
    if not blocked or not (picture.waiting or len(blocked) == len(picture.live)):
        return None
    first = blocked[0].thread
    assert first is not None
    return Verdict(
        NAME,
        f"{ranks(blocked)} {_does(blocked[0], first)} at {place(blocked[0].place)}",
        suspects(blocked, picture),
        (f"it is {in_the_kernel(first)}", *has_not_reached(blocked, picture)),
        f"{look_at(blocked)}; or cast {blocked[0].rank[1]} w",
    )


def _blocked(thread: Thread) -> bool:
    if thread.state == DISK:
        return True
    return thread.system_call in FILE_CALLS | NETWORK_CALLS


def _does(one: Doing, thread: Thread) -> str:
    call = thread.system_call
    if call in NETWORK_CALLS:
        end = one.other_end(thread.file)
        return f"waits for {end}, which is no rank," if end else "waits for a connection"
    doing = {"openat": "opens", "open": "opens", "write": "writes"}.get(call, "reads")
    named = one.call.arguments.get("0") or one.call.of.get("name") if one.call else ""
    return f"{doing} {thread.file or named or 'a file'}"
