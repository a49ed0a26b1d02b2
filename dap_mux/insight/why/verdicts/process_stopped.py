"""A rank's process is stopped by a signal, as by Ctrl-Z or `kill -STOP`."""

from __future__ import annotations

from dap_mux.insight.why.picture import Picture
from dap_mux.insight.why.verdict import Verdict, ranks, suspects, verb, who_waits

NAME = "process-stopped"
STOPPED = frozenset("Tt")


def find(picture: Picture) -> Verdict | None:
    """The system says so; a tracer's stop looks alike (`t`)."""
    stopped = [one for one in picture.live if one.processes and one.processes[-1].state in STOPPED]
    if not stopped:
        return None
    pids = " ".join(str(one.processes[-1].pid) for one in stopped)
    traced = all(one.processes[-1].state == "t" for one in stopped)
    by = "another debugger holds it" if traced else "a signal has stopped it (SIGSTOP, Ctrl-Z)"
    return Verdict(
        NAME,
        f"the process of {ranks(stopped)} {verb(stopped, 'is', 'are')} stopped: {by}",
        suspects(stopped, picture),
        who_waits(picture),
        f"kill -CONT {pids}" if not traced else "",
    )
