"""Every cause the doctor knows: one row and one small module each.

An unreachable rank has one cause: the first of `REACHING` that applies to its endpoint; ranks with
the same cause are reported together. Every row of `OTHERS` examines all observations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dap_mux.doctor.causes import (
    already_attached,
    clock,
    compiled,
    condition,
    condition_cost,
    debugpy_version,
    file_mapping,
    just_my_code,
    port_range,
    ptrace,
    refused,
    tunnel_down,
    wedged,
    wrong_port,
)
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations, Subject


@dataclass(frozen=True)
class Reaching:
    """Why a rank cannot be reached."""

    name: str
    applies: Callable[[Subject, Observations], bool]
    describe: Callable[[Sequence[Subject], Observations], Finding]


REACHING: Final = tuple(
    Reaching(module.CAUSE, module.applies, module.describe)
    for module in (already_attached, wedged, port_range, tunnel_down, wrong_port, refused)
)
Examine = Callable[[Observations], Awaitable[list[Finding]]]
OTHERS: Final[tuple[Examine, ...]] = tuple(
    module.examine
    for module in (
        debugpy_version,
        file_mapping,
        just_my_code,
        condition,
        condition_cost,
        compiled,
        ptrace,
        clock,
    )
)


async def examine(observed: Observations) -> list[Finding]:
    """Return all findings, unreachable ranks first."""
    findings = list(_reaching(observed))
    for look_for in OTHERS:
        findings += await look_for(observed)
    return findings


def _reaching(observed: Observations) -> list[Finding]:
    found: dict[tuple[str, str], list[Subject]] = {}
    for subject in observed.troubled():
        cause = next((one for one in REACHING if one.applies(subject, observed)), None)
        if cause is not None:
            found.setdefault((cause.name, subject.named), []).append(subject)
    by_name = {cause.name: cause for cause in REACHING}
    return [by_name[name].describe(subjects, observed) for (name, _), subjects in found.items()]
