"""Only some ports of a range are forwarded."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.doctor.causes.summaries import endpoints_of, lines, ranks_of
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations, Subject

CAUSE = "port-range"


def applies(subject: Subject, observed: Observations) -> bool:
    """Whether nothing listens there while other ports of the range are forwarded."""
    return subject.who == "nobody" and bool(_forwarded(subject, observed))


def describe(subjects: Sequence[Subject], observed: Observations) -> Finding:
    """List the ports to forward as well."""
    there = _forwarded(subjects[0], observed)
    missing = " ".join(f"{each.port}:{each.port}" for each in subjects)
    holders = dict.fromkeys(str(each.holder) for each in there if each.holder)
    evidence = [f"{endpoints_of(there)}: forwarded by {', '.join(holders)}"]
    evidence += [f"nothing listens on {each.endpoint}" for each in subjects]
    return Finding(
        CAUSE,
        f"only some ports of {subjects[0].named} are forwarded: {endpoints_of(subjects)} is not",
        lines(evidence),
        (
            (
                f"forward them too: `kubectl port-forward POD {missing}` accepts several ports, "
                "`ssh -L` is given once for each"
            ),
            "or forward one port for all: `dap-mux attach` inside the cluster, and its port 5677",
        ),
        ranks=ranks_of(subjects),
        where=endpoints_of(subjects),
    )


def _forwarded(subject: Subject, observed: Observations) -> list[Subject]:
    return [
        each
        for each in observed.subjects
        if each.named == subject.named and each.host == subject.host and each.who == "forwarder"
    ]
