"""Text that several causes share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dap_mux.doctor.observations import Subject
from dap_mux.rank_sets import fold

MAX_EVIDENCE: Final = 6  # lines; a job of a thousand ranks fails in one way


def lines(evidence: Iterable[str]) -> tuple[str, ...]:
    """Remove duplicates and limit the number of lines."""
    distinct = list(dict.fromkeys(evidence))
    more = len(distinct) - MAX_EVIDENCE
    return tuple(distinct[:MAX_EVIDENCE]) + ((f"and {more} more like these",) if more > 0 else ())


def ranks_of(subjects: Sequence[Subject]) -> str:
    """Return the folded set of ranks that a finding is about; "" for none."""
    found = [each.rank for each in subjects if each.rank]
    return fold(found, subjects[0].default_group) if found else ""


def endpoints_of(subjects: Sequence[Subject]) -> str:
    """Return `host:5678-5681`, with consecutive ports folded."""
    by_host: dict[str, list[int]] = {}
    for each in subjects:
        by_host.setdefault(each.endpoint.rpartition(":")[0], []).append(each.port)
    return ", ".join(
        f"{host}:{folded}" for host, ports in by_host.items() for folded in _folded(sorted(ports))
    )


def _folded(ports: list[int]) -> list[str]:
    runs: list[list[int]] = []
    for port in dict.fromkeys(ports):
        if runs and runs[-1][-1] == port - 1:
            runs[-1].append(port)
        else:
            runs.append([port])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
