"""A breakpoint in library code, which debugpy skips because of `justMyCode`."""

from __future__ import annotations

from typing import Final

from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations
from dap_mux.doctor.snapshot import SessionSnapshot

CAUSE: Final = "just-my-code"
SIGN: Final = "justMyCode"  # in debugpy's message about a breakpoint that it ignores
# Private interface of pydevd: without it nothing is reported.
FILTERED: Final = (
    "(lambda d, p: bool(d.get_use_libraries_filter()"
    " and not d.in_project_roots_filename_uncached(p)))"
    "(__import__('pydevd').get_global_debugger(), {!r})"
)


async def examine(observed: Observations) -> list[Finding]:
    """Check breakpoints, and files that the user asked about."""
    findings = []
    for snapshot in observed.snapshots:
        told = {
            f"{one['path']}:{one['line']}": str(one["message"]).partition("\n")[0]
            for one in snapshot.breakpoints
            if SIGN in str(one["message"])
        }
        findings += [_finding(where, f"{where}: {seen}") for where, seen in told.items()]
        findings += [one for one in await _of_files(snapshot, observed) if one.where not in told]
    return findings


async def _of_files(snapshot: SessionSnapshot, observed: Observations) -> list[Finding]:
    findings = []
    for place in observed.places:
        answers = await snapshot.ask(FILTERED.format(place.path))
        ranks = [ranks for ranks, filtered in answers.items() if filtered is True]
        if ranks:
            seen = f"rank {','.join(ranks)}: {place.path} counts as library code"
            findings.append(_finding(str(place), seen))
    return findings


def _finding(where: str, seen: str) -> Finding:
    return Finding(
        CAUSE,
        f"{where} is library code, which justMyCode excludes",
        (seen,),
        ("put this into the launch configuration and start debugging again:",),
        paste='"justMyCode": false',
        where=where,
    )
