"""The tunnel is down, or leads to a port where nothing listens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dap_mux.doctor.causes.summaries import endpoints_of, lines, ranks_of
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations, Subject

CAUSE = "tunnel-down"
# In a session's reason.
DOWN = re.compile(r"^the rank closed the connection|^the tunnel .* is down|^(kubectl|oc|ssh) ")


def applies(subject: Subject, _: Observations) -> bool:
    """Whether the rank was lost, or connections are accepted and closed at once."""
    lost = subject.state == "lost" and subject.who in ("nobody", "unknown", "forwarder")
    return lost or bool(DOWN.search(subject.reason)) or subject.outcome == "hung up"


def describe(subjects: Sequence[Subject], _: Observations) -> Finding:
    """Point at both ends of the tunnel."""
    return Finding(
        CAUSE,
        f"the tunnel to {endpoints_of(subjects)} is down, or nothing listens at its other end",
        lines(_evidence(each) for each in subjects),
        (
            (
                "start the forward again and look at what it prints: `kubectl port-forward POD "
                "5678:5678` (or `oc`, or `ssh -N -L 5678:127.0.0.1:5678 HOST`); a session with "
                "endpoints such as k8s:... or ssh:... does so by itself"
            ),
            "if the forward works, the rank behind it does not listen on that port: see its log",
        ),
        ranks=ranks_of(subjects),
        where=endpoints_of(subjects),
    )


def _evidence(subject: Subject) -> str:
    if subject.outcome == "hung up":
        holder = f" by {subject.holder}" if subject.holder else ""
        return f"a connection to {subject.endpoint} is accepted{holder}, and closed at once"
    return f"the session reports for rank {subject.ranks} ({subject.endpoint}): {subject.reason}"
