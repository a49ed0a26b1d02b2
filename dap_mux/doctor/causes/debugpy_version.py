"""debugpy is missing in the job's Python, or older than what dap-mux is tested with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dap_mux.doctor.finding import Finding
from dap_mux.doctor.picture import Json, Picture
from dap_mux.doctor.scene import Scene

MISSING: Final = "debugpy-missing"
OLD: Final = "debugpy-old"
PYTHON: Final = "python"  # the command does not run at all
NEEDED: Final = "1.8.14"  # as in pyproject.toml
INSTALL: Final = f"pip install 'debugpy>={NEEDED}'"
# Of one that was brought in by its number there may be no more than pydevd.
REFUSED: Final = re.compile(r"its debugpy is (?P<version>\S+), and dap-mux needs")
"""Of a rank's reason in `list`: the session has left it alone, so it cannot be asked."""
ASK: Final = (
    "getattr(__import__('sys').modules.get('debugpy'), '__version__', '')"
    " if 'debugpy' in __import__('sys').modules else ''"
)


async def examine(scene: Scene) -> list[Finding]:
    """The Pythons that were named, the debugpys that were talked to, and each session's ranks."""
    findings = [*_of_pythons(scene), *_of_subjects(scene)]
    for picture in scene.pictures:
        for ranks, version in (await picture.ask(ASK)).items():
            if is_old(str(version)):
                findings.append(_old(f"the ranks' debugpy is {version}", ranks, picture.address))
        findings += _of_refused(picture)
    return findings


def _of_refused(picture: Picture) -> Iterator[Finding]:
    """The ranks that the session refuses to attach to, by their debugpy."""
    refused: dict[str, list[Json]] = {}
    for entry in picture.ranks:
        found = REFUSED.search(entry.get("reason") or "")
        if found:
            refused.setdefault(found["version"], []).append(entry)
    for version, entries in refused.items():
        seen = f"the ranks' debugpy is {version}, and the session refuses to attach to it"
        yield _old(seen, picture.named(entries), picture.address)


def _of_pythons(scene: Scene) -> Iterator[Finding]:
    for python in scene.pythons:
        if python.missing:
            yield Finding(
                MISSING,
                f"the Python of `{python.command}` has no debugpy",
                (f"it says: {python.problem}",),
                ("install it there, in the job's image or environment:",),
                paste=INSTALL,
                where=python.command,
            )
        elif python.problem:
            yield Finding(
                PYTHON,
                f"`{python.command}` does not start a Python",
                (python.problem,),
                ("give a command that does, such as .venv/bin/python",),
                where=python.command,
            )
        elif is_old(python.version):
            yield _old(f"`{python.command}` has debugpy {python.version}", "", python.command)


def _of_subjects(scene: Scene) -> Iterator[Finding]:
    for subject in scene.subjects:
        if subject.talk is not None and is_old(subject.talk.version):
            seen = f"{subject.endpoint} says that it is debugpy {subject.talk.version}"
            yield _old(seen, "", subject.endpoint)


def _old(seen: str, ranks: str, where: str) -> Finding:
    return Finding(
        OLD,
        f"debugpy is older than {NEEDED}, the oldest that dap-mux is tested with",
        (seen,),
        ("bring a newer one into the job's image or environment:",),
        paste=INSTALL,
        ranks=ranks,
        where=where,
    )


def is_old(version: str) -> bool:
    """Whether a version is below the one needed; an unreadable one is not."""
    found = _numbers(version)
    return bool(found) and found < _numbers(NEEDED)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
