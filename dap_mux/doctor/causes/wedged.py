"""debugpy's adapter, the process with a rank's port, hangs or has ended; the rank still runs."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.doctor.causes.summaries import endpoints_of, lines, ranks_of
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations, Subject
from dap_mux.doctor.probe import TAKEN

CAUSE = "wedged-adapter"
UNRESPONSIVE = ("wedged", "refuses")  # accepts connections, but no debugger
NO_REPLY = "no answer"  # in a session's reason


def applies(subject: Subject, _: Observations) -> bool:
    """Whether the adapter hangs or does not respond, or the rank runs without its port."""
    silent = subject.outcome in UNRESPONSIVE or NO_REPLY in subject.reason
    return silent or bool(_signs(subject))


def describe(subjects: Sequence[Subject], _: Observations) -> Finding:
    """Only restarting the rank helps."""
    return Finding(
        CAUSE,
        f"debugpy's adapter at {endpoints_of(subjects)} is wedged: the rank runs, "
        "but no debugger can attach to it any more",
        lines(line for each in subjects for line in _evidence(each)),
        (
            (
                "restart the rank; until then it cannot be reached (a process started without "
                "debugpy can be attached to with `dap-mux attach pid:NUMBER`)"
            ),
            (
                "keep port scanners, health checks and `nc` away from debugpy's ports: a "
                "connection that is opened and closed has this effect"
            ),
        ),
        ranks=ranks_of(subjects),
        where=endpoints_of(subjects),
    )


def _evidence(subject: Subject) -> list[str]:
    signs = _signs(subject)
    if subject.talk is not None and subject.outcome in UNRESPONSIVE:
        signs.append(f"{subject.endpoint} accepts connections: {subject.talk.words}")
    if NO_REPLY in subject.reason:
        signs.append(f"the session reports for rank {subject.ranks}: {subject.reason}")
    return signs


def _signs(subject: Subject) -> list[str]:
    found = []
    if subject.who == "nobody" and subject.rank_process is not None:
        found.append(
            f"{subject.rank_process} has debugpy loaded and runs, but nothing listens on "
            f"{subject.endpoint}: its adapter has ended"
        )
    if subject.who != "debugpy" or subject.holder is None or subject.listener is None:
        return found
    if TAKEN in subject.reason and not subject.clients:
        found.append(
            f"{subject.endpoint} reports {TAKEN!r}, but no other client is connected to it"
        )
    if subject.holder.is_halted:
        state = subject.holder.state
        found.append(f"{subject.holder} holds {subject.endpoint} and is suspended (state {state})")
    if subject.listener.queue:
        found.append(
            f"{subject.listener.queue} connections to {subject.endpoint} have not been accepted"
        )
    if subject.left:
        found.append(
            f"{subject.left} connections to {subject.endpoint} have been closed, and its "
            f"adapter ({subject.holder}) has not noticed"
        )
    return found
