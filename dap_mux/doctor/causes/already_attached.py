"""Another debugger is attached to the rank: debugpy accepts one client."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.doctor.causes.summaries import endpoints_of, lines, ranks_of
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.machine import named
from dap_mux.doctor.observations import Observations, Subject
from dap_mux.doctor.probe import TAKEN

CAUSE = "already-attached"


def applies(subject: Subject, _: Observations) -> bool:
    """Whether debugpy reports it, or another client's connection exists."""
    if subject.who == "debugpy":
        return bool(subject.clients) and (TAKEN in subject.reason or not subject.session)
    return subject.outcome == "taken" or TAKEN in subject.reason


def describe(subjects: Sequence[Subject], _: Observations) -> Finding:
    """Name the other client, if it is visible."""
    return Finding(
        CAUSE,
        f"another debugger is attached at {endpoints_of(subjects)}",
        lines(_evidence(each) for each in subjects),
        (
            (
                "end that debug session (in VS Code: Disconnect), or join it: several editors can "
                "attach to one dap-mux session, `dap-mux sessions` shows where"
            ),
            "if its connection has just broken, debugpy notices within 20 s; dap-mux keeps trying",
        ),
        ranks=ranks_of(subjects),
        where=endpoints_of(subjects),
    )


def _evidence(subject: Subject) -> str:
    if subject.clients:
        return f"connected to {subject.endpoint}: {named(subject.clients)}"
    said = subject.talk.words if subject.talk else subject.reason
    return f"{subject.endpoint} says: {said}"
