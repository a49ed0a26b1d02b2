"""debugpy is missing in the job's Python, or older than dap-mux is tested with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations
from dap_mux.doctor.snapshot import Json, SessionSnapshot

MISSING: Final = "debugpy-missing"
OLD: Final = "debugpy-old"
PYTHON: Final = "python"  # the command does not run at all
OLDEST_SUPPORTED: Final = "1.8.14"  # as in pyproject.toml
INSTALL: Final = f"pip install 'debugpy>={OLDEST_SUPPORTED}'"
# A process with injected debugpy may have only pydevd.
REFUSED: Final = re.compile(r"its debugpy is (?P<version>\S+), and dap-mux needs")
"""Of a rank's reason in `list`: the session has left it alone, so it cannot be asked."""
VERSION_EXPRESSION: Final = (
    "getattr(__import__('sys').modules.get('debugpy'), '__version__', '')"
    " if 'debugpy' in __import__('sys').modules else ''"
)


async def examine(observed: Observations) -> list[Finding]:
    """Check the Pythons that were named, the debugpys that replied, and each session's ranks."""
    findings = [*_of_pythons(observed), *_of_subjects(observed)]
    for snapshot in observed.snapshots:
        for ranks, version in (await snapshot.ask(VERSION_EXPRESSION)).items():
            if is_old(str(version)):
                findings.append(_old(f"the ranks' debugpy is {version}", ranks, snapshot.address))
        findings += _of_refused(snapshot)
    return findings


def _of_refused(snapshot: SessionSnapshot) -> Iterator[Finding]:
    """Report the ranks to which a session refuses to attach because of their debugpy."""
    refused: dict[str, list[Json]] = {}
    for entry in snapshot.ranks:
        found = REFUSED.search(entry.get("reason") or "")
        if found:
            refused.setdefault(found["version"], []).append(entry)
    for version, entries in refused.items():
        seen = f"the ranks' debugpy is {version}, and the session refuses to attach to it"
        yield _old(seen, snapshot.named(entries), snapshot.address)


def _of_pythons(observed: Observations) -> Iterator[Finding]:
    for python in observed.pythons:
        if python.missing:
            yield Finding(
                MISSING,
                f"the Python of `{python.command}` has no debugpy",
                (f"its error: {python.problem}",),
                ("install it there, in the job's image or environment:",),
                paste=INSTALL,
                where=python.command,
            )
        elif python.problem:
            yield Finding(
                PYTHON,
                f"`{python.command}` does not start Python",
                (python.problem,),
                ("give a command such as .venv/bin/python",),
                where=python.command,
            )
        elif is_old(python.version):
            yield _old(f"`{python.command}` has debugpy {python.version}", "", python.command)


def _of_subjects(observed: Observations) -> Iterator[Finding]:
    for subject in observed.subjects:
        if subject.talk is not None and is_old(subject.talk.version):
            seen = f"{subject.endpoint} reports debugpy {subject.talk.version}"
            yield _old(seen, "", subject.endpoint)


def _old(seen: str, ranks: str, where: str) -> Finding:
    return Finding(
        OLD,
        f"debugpy is older than {OLDEST_SUPPORTED}, the oldest that dap-mux is tested with",
        (seen,),
        ("install a newer one in the job's image or environment:",),
        paste=INSTALL,
        ranks=ranks,
        where=where,
    )


def is_old(version: str) -> bool:
    """Whether a version is too old; an unreadable one is not."""
    found = _numbers(version)
    return bool(found) and found < _numbers(OLDEST_SUPPORTED)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
