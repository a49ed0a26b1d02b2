"""debugpy's adapter, the process that has a rank's port, hangs or has ended; the rank runs on."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.doctor.causes.summaries import endpoints_of, lines, ranks_of
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations, Subject
from dap_mux.doctor.probe import TAKEN

CAUSE = "wedged-adapter"
UNRESPONSIVE = ("wedged", "refuses")  # it takes a connection, and no debugger
NO_REPLY = "no answer"  # a session's words for a rank that takes connections and says nothing


def applies(subject: Subject, _: Observations) -> bool:
    """It hangs, as its sockets or its silence show; or the rank is there, and its port is not."""
    silent = subject.outcome in UNRESPONSIVE or NO_REPLY in subject.reason
    return silent or bool(_signs(subject))


def describe(subjects: Sequence[Subject], _: Observations) -> Finding:
    """There is no way back in but the rank's restart."""
    return Finding(
        CAUSE,
        f"debugpy's adapter at {endpoints_of(subjects)} is wedged: the rank runs, and nobody can "
        "attach to it any more",
        lines(line for each in subjects for line in _evidence(each)),
        (
            (
                "start the rank again; it cannot be reached as it is (one that was started without "
                "debugpy's port can be attached to with `dap-mux attach pid:NUMBER`)"
            ),
            (
                "keep port scanners, health checks and `nc` away from debugpy's ports: a "
                "connection that is opened and closed again does this"
            ),
        ),
        ranks=ranks_of(subjects),
        where=endpoints_of(subjects),
    )


def _evidence(subject: Subject) -> list[str]:
    signs = _signs(subject)
    if subject.talk is not None and subject.outcome in UNRESPONSIVE:
        signs.append(f"{subject.endpoint} takes connections: {subject.talk.words}")
    if NO_REPLY in subject.reason:
        signs.append(f"the session says of rank {subject.ranks}: {subject.reason}")
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
        found.append(f"{subject.endpoint} says {TAKEN!r}, and nobody else is connected to it")
    if subject.holder.is_halted:
        state = subject.holder.state
        found.append(f"{subject.holder} holds {subject.endpoint} and is halted (state {state})")
    if subject.listener.queue:
        found.append(f"{subject.listener.queue} connections wait on {subject.endpoint}, not taken")
    if subject.left:
        found.append(
            f"{subject.left} connections to {subject.endpoint} have ended, and its adapter "
            f"({subject.holder}) has not noticed"
        )
    return found
