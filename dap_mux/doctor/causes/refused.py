"""Connection refused: nothing listens where a rank should."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.doctor.causes.summaries import endpoints_of, lines, ranks_of
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations, Subject

CAUSE = "refused"


def applies(subject: Subject, _: Observations) -> bool:
    """Whether nothing listens, or nothing responds at all."""
    return (
        subject.who == "nobody"
        or subject.outcome == "unreachable"
        or "nothing listens" in subject.reason
    )


def describe(subjects: Sequence[Subject], _: Observations) -> Finding:
    """Say what to start, or which address to use."""
    where = endpoints_of(subjects)
    return Finding(
        CAUSE,
        f"connection refused: nothing listens on {where}",
        lines(_evidence(each) for each in subjects),
        (
            (
                "start the job under the debugger: `dap-mux run -n 4 SCRIPT`, or, in each rank, "
                "`python -m dap_mux.rank SCRIPT` (it prints where it listens)"
            ),
            (
                "if it runs elsewhere or on another port, use that address instead of "
                f"{where}; a job that has just been started may need a moment"
            ),
        ),
        ranks=ranks_of(subjects),
        where=where,
    )


def _evidence(subject: Subject) -> str:
    if subject.reason:
        return f"the session reports for rank {subject.ranks}: {subject.reason}"
    if subject.talk is not None:
        why = subject.talk.words or "connection refused"
        return f"{subject.endpoint} ({subject.named}): {why}"
    return f"no process on this machine listens on {subject.endpoint} ({subject.named})"
