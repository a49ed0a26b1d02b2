"""A time-out of a collective, or the scheduler's time limit, is about to expire."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dap_mux.cluster.slurm_commands import time_left
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations
from dap_mux.doctor.snapshot import SessionSnapshot
from dap_mux.engine.evaluate.timeout_probe import look
from dap_mux.errors import DapMuxError
from dap_mux.injected import source_of
from dap_mux.insight.timeout_warnings import TimeoutWarning, timeout_warnings
from dap_mux.insight.timeouts import TimeoutReport, read_report
from dap_mux.rank_sets import RankId, fold, parse
from dap_mux.rank_sets.world import World

CAUSE: Final = "clock"


async def examine(observed: Observations) -> list[Finding]:
    """Ask the ranks of every session for their time limits."""
    return [
        _finding(warning, snapshot)
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
    question = look(source_of("timeout_probe"), extends=False)
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


def _finding(warning: TimeoutWarning, snapshot: SessionSnapshot) -> Finding:
    return Finding(
        CAUSE,
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
