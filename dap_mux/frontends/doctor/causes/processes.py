"""The job's processes: an old debugpy, a process that cannot be looked into, a time limit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from dap_mux.cluster.injection import REMOTE_EXEC_PYTHON, NoWorkingDebugger, debugger_for
from dap_mux.cluster.python_process import RunningPython, refuse_to_trace
from dap_mux.cluster.slurm import time_left
from dap_mux.frontends.doctor.observations import Finding, Json, Observations, SessionSnapshot
from dap_mux.pure.errors import DapMuxError, Refused
from dap_mux.pure.insight.timeouts import (
    TimeoutReport,
    TimeoutWarning,
    read_report,
    timeout_warnings,
)
from dap_mux.pure.rank_sets import RankId, fold, parse
from dap_mux.pure.rank_sets.world import World
from dap_mux.pure.remote import look_at_timeouts
from dap_mux.rank.injected import source_of
from dap_mux.system import procfs

# debugpy is missing in the job's Python, or older than dap-mux is tested with.

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


async def examine_debugpy_version(observed: Observations) -> list[Finding]:
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


# A running process that cannot be attached to: forbidden, not Python, or no native debugger.

FORBIDDEN: Final = "ptrace"
UNFIT: Final = "process"
ALLOW: Final = (
    "run `dap-mux` as the user of that process, or as root",
    (
        "where the kernel forbids it: `sudo sysctl kernel.yama.ptrace_scope=0`; in a container the "
        "capability SYS_PTRACE (docker: --cap-add SYS_PTRACE; Kubernetes: capabilities.add)"
    ),
    "or start the program under the debugger: `dap-mux run`",
)
NAME_ANOTHER: Final = ("name a running process of Python 3.8 or later",)
INSTALL_A_DEBUGGER: Final = (
    "`apt-get install gdb lldb`: one that works is enough",
    "or start the program under the debugger: `dap-mux run`",
)


async def examine_ptrace(observed: Observations) -> list[Finding]:
    """Check each process that the user named."""
    return [found for pid in observed.processes if (found := await _of_process(pid))]


async def _of_process(pid: int) -> Finding | None:
    try:
        process = RunningPython.read(pid)
        if process.listening_port() is None:
            refuse_to_trace(process)
            _look_inside(process)
            await debugger_for([process])
    except (Refused, PermissionError) as error:
        summary, seen = f"debugging process {pid} is not permitted", (str(error),)
        return Finding(FORBIDDEN, summary, seen, ALLOW, where=f"pid:{pid}")
    except (DapMuxError, OSError) as error:
        fix = INSTALL_A_DEBUGGER if isinstance(error, NoWorkingDebugger) else NAME_ANOTHER
        summary, seen = f"process {pid} cannot be debugged", (str(error),)
        return Finding(UNFIT, summary, seen, fix, where=f"pid:{pid}")
    return None


def _look_inside(process: RunningPython) -> None:
    """Let the kernel decide as it does for gdb: opening the memory follows the same rule."""
    if process.version >= REMOTE_EXEC_PYTHON:
        return
    os.close(os.open(procfs.folder(process.pid) / "mem", os.O_RDONLY))


# A time-out of a collective, or the scheduler's time limit, is about to expire.


async def examine_clock(observed: Observations) -> list[Finding]:
    """Ask the ranks of every session for their time limits."""
    return [
        _clock_finding(warning, snapshot)
        for snapshot in observed.snapshots
        for warning in await _warnings(snapshot)
        if warning.urgent and (warning.kind != "collective" or _waits_for_us(snapshot))
    ]


def _waits_for_us(snapshot: SessionSnapshot) -> bool:
    """Ignore a collective that does not wait for a rank that we have stopped."""
    return any(entry["state"] in ("stopped", "pausing") for entry in snapshot.attached)


async def _warnings(snapshot: SessionSnapshot) -> list[TimeoutWarning]:
    told: dict[RankId, TimeoutReport] = {}
    limits: dict[str, TimeoutReport] = {}  # asked once for each job
    question = look_at_timeouts(source_of("timeout_probe"), extends=False)
    for ranks, said in (await snapshot.ask(question)).items():
        try:
            one = read_report(said)
        except ValueError:
            continue
        if one.job and one.left is None:
            limits[one.job] = limits.get(one.job) or await _limit(one.job)
            one = replace(one, left=limits[one.job].left)
        told.update(dict.fromkeys(_ranks(ranks, snapshot), one))
    return timeout_warnings(told, snapshot.default_group)


async def _limit(job: str) -> TimeoutReport:
    """Ask SLURM if the rank does not know: older releases do not tell a job its limit."""
    try:
        left = await time_left(job)
    except DapMuxError:  # its commands are not on this machine
        left = None
    return TimeoutReport(job=job, left=left.total_seconds() if left is not None else None)


def _ranks(text: str, snapshot: SessionSnapshot) -> list[RankId]:
    ids = tuple(sorted((str(one["group"]), int(one["rank"])) for one in snapshot.ranks))
    world = World(ranks=ids, meshes={}, states={}, names={}, default_group=snapshot.default_group)
    return list(parse(text.replace("; ", " | ")).select(world, strict=False))


def _clock_finding(warning: TimeoutWarning, snapshot: SessionSnapshot) -> Finding:
    return Finding(
        "clock",
        "a time limit of the job is about to expire",
        (warning.text,),
        (
            "continue the stopped ranks in time (`release` detaches them)",
            (
                "for long debugging sessions set long limits: init_process_group(timeout=...), and "
                "a matching limit of the scheduler"
            ),
        ),
        ranks=fold(warning.ranks, snapshot.default_group),
        where=f"session {snapshot.address}",
    )
