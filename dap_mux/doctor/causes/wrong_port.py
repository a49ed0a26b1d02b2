"""A wrong port: another program listens there, or this folder's ranks listen elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.doctor.causes.summaries import endpoints_of, lines, ranks_of
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations, Subject

CAUSE = "wrong-port"
MALFORMED = "sent malformed data"  # in a session's reason


def applies(subject: Subject, observed: Observations) -> bool:
    """Whether another program listens, or nothing while debugpys of this folder wait elsewhere."""
    other = subject.who in ("stranger", "dap-mux")
    misses = subject.who == "nobody" and bool(observed.elsewhere) and not subject.rank_process
    return other or misses or MALFORMED in subject.reason


def describe(subjects: Sequence[Subject], observed: Observations) -> Finding:
    """Name the ports of the ranks, if they can be found."""
    there = sorted(observed.elsewhere)
    found = ", ".join(f"127.0.0.1:{port}" for port in there)
    fix = f"use {found} instead" if there else "find out where the ranks listen: each one prints it"
    return Finding(
        CAUSE,
        f"wrong port: no rank listens on {endpoints_of(subjects)}",
        lines([*(_evidence(each) for each in subjects), *_elsewhere(observed)]),
        (f"{fix}; rank N listens on base port + N (5678 by default)",),
        ranks=ranks_of(subjects),
        where=endpoints_of(subjects),
    )


def _evidence(subject: Subject) -> str:
    if subject.who == "dap-mux":
        return f"a dap-mux session listens on {subject.endpoint}: for editors, not a rank"
    if subject.who == "nobody":
        return f"nothing listens on {subject.endpoint} ({subject.named})"
    who = str(subject.holder) if subject.holder else "another program"
    said = subject.talk.words if subject.talk else subject.reason
    told = f": {said}" if said else ""
    return (
        f"{who} listens on {subject.endpoint} and does not speak the debug adapter protocol{told}"
    )


def _elsewhere(observed: Observations) -> list[str]:
    return [
        f"a debugpy started in this folder waits on port {port} ({holder})"
        for port, holder in sorted(observed.elsewhere.items())
    ]
