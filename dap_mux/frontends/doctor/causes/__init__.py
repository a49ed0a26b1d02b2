"""Every cause the doctor knows: one row each.

An unreachable rank has one cause: the first of `REACHING` that applies to its endpoint; ranks with
the same cause are reported together. Every row of `OTHERS` examines all observations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dap_mux.frontends.doctor.causes import breakpoints, file_mapping, processes, reaching
from dap_mux.frontends.doctor.observations import Finding, Observations, Subject


@dataclass(frozen=True)
class Reaching:
    """Why a rank cannot be reached."""

    name: str
    applies: Callable[[Subject, Observations], bool]
    explain: Callable[[Sequence[Subject], Observations], reaching.Explanation]


REACHING: Final = (
    Reaching("already-attached", reaching.already_attached_applies, reaching.already_attached),
    Reaching("wedged-adapter", reaching.wedged_applies, reaching.wedged),
    Reaching("port-range", reaching.port_range_applies, reaching.port_range),
    Reaching("tunnel-down", reaching.tunnel_down_applies, reaching.tunnel_down),
    Reaching("wrong-port", reaching.wrong_port_applies, reaching.wrong_port),
    Reaching("refused", reaching.refused_applies, reaching.refused),
)
Examine = Callable[[Observations], Awaitable[list[Finding]]]
OTHERS: Final[tuple[Examine, ...]] = (
    processes.examine_debugpy_version,
    file_mapping.examine_file_mapping,
    breakpoints.examine_just_my_code,
    breakpoints.examine_condition,
    breakpoints.examine_condition_cost,
    breakpoints.examine_compiled,
    processes.examine_ptrace,
    processes.examine_clock,
)


async def examine(observed: Observations) -> list[Finding]:
    """Return all findings, unreachable ranks first."""
    findings = list(_reaching(observed))
    for look_for in OTHERS:
        findings += await look_for(observed)
    return findings


def _reaching(observed: Observations) -> Iterator[Finding]:
    found: dict[tuple[str, str], list[Subject]] = {}
    for subject in observed.troubled():
        cause = next((one for one in REACHING if one.applies(subject, observed)), None)
        if cause is not None:
            found.setdefault((cause.name, subject.named), []).append(subject)
    by_name = {cause.name: cause for cause in REACHING}
    for (name, _), subjects in found.items():
        said = by_name[name].explain(subjects, observed)
        ranks, where = reaching.ranks_of(subjects), reaching.endpoints_of(subjects)
        seen = reaching.lines(said.evidence)
        yield Finding(name, said.summary, seen, said.fix, ranks=ranks, where=where)
