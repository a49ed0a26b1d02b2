"""`dap-mux run`: ranks on this machine, and a session that owns their job."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path

import anyio
from msgspec.structs import replace

from dap_mux.cluster.job import RankEnded, RankProcess, describe_exit
from dap_mux.cluster.local import LocalCluster, LocalJob, job_exit_code, job_python
from dap_mux.engine import inputs
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.rank.environ import REPLAY, REPLAY_AT
from dap_mux.session.dial_out import dial_variables
from dap_mux.session.end_of_job import hold_text
from dap_mux.session.job import (
    FILES_PER_OWN_RANK,
    InlineConsole,
    Job,
    entry_line,
    greet,
    rank_variables,
    with_processes,
)
from dap_mux.session.session import endpoint_of, open_session, settings_of
from dap_mux.session.terminal_output import Echo, say, set_up_log
from dap_mux.system.config import RunOptions
from dap_mux.system.config.options import Address
from dap_mux.system.temporary_folders import log_folder

GROUP = "job"
STOP_TIMEOUT_S = 5.0  # for ranks to end, before they are killed
LOOPBACK = "127.0.0.1"


async def run_job(options: RunOptions, console: InlineConsole | None = None) -> int:
    """Start the ranks, serve them, and return the job's own exit code."""
    set_up_log(options.config.verbosity, options.config.log_dir, options.config.log)
    with log_folder(options.config.log_dir) as log_dir:
        return await _run_job(options, console, log_dir)


async def _run_job(options: RunOptions, console: InlineConsole | None, log_dir: Path) -> int:
    config = options.config
    job = LocalJob(
        command=options.command,
        world_size=options.world_size,
        base_port=config.base_port,
        wait=config.wait,
        log_dir=log_dir,
        python=job_python(config.python, os.environ),
        cwd=Path.cwd(),
        hold=hold_text(options.hold),
        variables=rank_variables(options),
        only=options.only,
    )
    settings = replace(settings_of(config, owns_job=True), job_name=job_name(options.command))
    settings = replace(settings, replays=REPLAY in options.variables)
    dial = Address(LOOPBACK, 0) if options.dial else None
    ports = range(config.base_port, config.base_port + options.world_size)
    stops = config.wait and REPLAY_AT not in options.variables  # else where it is told to
    entry = entry_line(options.command) if stops else {}
    async with (
        open_session(config, settings, avoid=ports, entry=entry) as session,
        dial_variables(session, config, dial, {}, ours=True) as variables,
        LocalCluster(dataclasses.replace(job, env=variables)) as cluster,
    ):
        count = "1 rank" if len(job.ranks) == 1 else f"{len(job.ranks)} ranks"
        text = f"one session for {count} on {session.address}; logs in {job.log_dir}"
        if job.python != sys.executable:
            text += f"; the ranks' Python is {job.python}"
        await greet(session, settings.job_name, text, waits=job.wait, console=console is not None)
        several, why_after = len(job.ranks) > 1, options.why_after
        echo = Echo({rank.log_path: f"[{rank.rank}] " if several else "" for rank in cluster.ranks})
        ranks = LocalRanks(
            session,
            cluster,
            dial=options.dial,
            console=console,
            echo=echo,
            why_after=why_after,
        )
        ranks.announce_ranks()
        code = await ranks.run()
        _report(cluster)
        ranks.report_end(code, options)
    return code


def job_name(command: tuple[str, ...]) -> str:
    """Return the name of the job: its script or module."""
    return command[1] if command[0] == "-m" else command[0]


@dataclasses.dataclass(eq=False)
class LocalRanks(Job):
    """The ranks of a local job, reported to the engine."""

    target = "every rank"
    notices = ("stopping every rank", "killing every rank")
    started: LocalCluster

    def __post_init__(self) -> None:
        super().__post_init__()
        self._first_job = self.started.job

    def announce_ranks(self) -> None:
        """Tell the engine which ranks to expect; it connects once they say that they listen."""
        self.session.expect(len(self.started.ranks), files=FILES_PER_OWN_RANK)
        for rank in self.started.ranks:
            port = 0 if self.dial else self._port(rank)
            expected = Endpoint(
                LOOPBACK, port, pid=rank.pid, announces=True, dials=self.dial, watched=True
            )
            self.session.rank_known(GROUP, rank.rank, expected)

    async def serve(self) -> int:
        """Follow the ranks until all have ended and the clients have been told."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_all)
            tasks.start_soon(self._failures.follow, self._failure_files)
            await self.session.over()
            tasks.cancel_scope.cancel()
        return job_exit_code(exit_codes(self.started), self.started.finished)

    async def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """End every rank: ask, and kill after `STOP_TIMEOUT_S`."""
        await self.started.stop(first, STOP_TIMEOUT_S)

    async def start_again(self, to: str) -> None:
        """Start every rank again; a replay up to there. Raises UsageError."""
        first = self._first_job
        at = {REPLAY_AT: to} if to else {}
        self.started.job = dataclasses.replace(first, variables={**first.variables, **at})
        await self.started.restart()
        self.announce_ranks()

    def running(self) -> dict[RankId, int]:
        """Return those that run."""
        return {(GROUP, rank.rank): rank.pid for rank in self.started.ranks if rank.runs}

    def signal_again(self, _: signal.Signals) -> None:
        """Kill the ranks at once."""
        for rank in self.started.ranks:
            rank.stop(signal.SIGKILL)

    def still_running(self) -> str:
        """Return the ranks that have not ended."""
        return (
            f"{with_processes(self.running())} to end; killed after {STOP_TIMEOUT_S:g} s, or at "
            "once by another Ctrl-C"
        )

    def _port(self, rank: RankProcess) -> int:
        return self.started.job.base_port + rank.rank

    async def _follow_all(self) -> None:
        """Follow the ranks to their ends, and again after each restart."""
        while True:
            async with anyio.create_task_group() as following:
                for rank in self.started.ranks:
                    following.start_soon(self._follow, rank)
                await self.stop_for_restart()
            await self.restart()

    async def _follow(self, rank: RankProcess) -> None:
        """Follow one rank. Its exit comes last: that of the last rank also ends this task."""
        await self._report_ready(rank)
        code = await rank.wait()
        id = GROUP, rank.rank
        self._failures.look(id, rank.failure_file)
        by_us = rank.being_stopped
        reason = self._exit_reasons.of(rank.pid, code, by_us=by_us)
        self._endings.note(id, rank.pid, code, reason, rank.failure_file)
        self.session.driver.feed(inputs.RankExited(id, code, reason, by_us))

    def _failure_files(self) -> list[tuple[RankId, Path]]:
        return [((GROUP, rank.rank), rank.failure_file) for rank in self.started.ranks]

    async def _report_ready(self, rank: RankProcess) -> None:
        """Wait until the rank has written where it listens, and only then tell the engine.

        Connecting to an adapter that is still starting can kill the rank. A rank that dials out
        makes itself known by its connection.
        """
        try:
            record = await rank.ready()
        except RankEnded as error:
            if not (self.ending or self.restarting):
                self.session.tell(str(error))
            return
        if self.dial:
            return
        if record.port != self._port(rank):
            say(f"rank {rank.rank}: port {self._port(rank)} is in use, took {record.port}")
        self.session.rank_known(GROUP, rank.rank, replace(endpoint_of(record), watched=True))


def exit_codes(cluster: LocalCluster) -> dict[int, int]:
    """Return the exit codes of the ranks that have ended."""
    return {r.rank: r.exit_code for r in cluster.ranks if r.exit_code is not None}


def _report(cluster: LocalCluster) -> None:
    """Print how the ranks ended, one line for all ranks that ended alike."""
    ends: dict[str, list[RankId]] = defaultdict(list)
    for rank, code in sorted(exit_codes(cluster).items()):
        ends[describe_exit(code)].append((GROUP, rank))
    for end, ranks in ends.items():
        many = len(ranks) > 1
        ended = end.replace("was ", "were ") if many else end
        say(f"{'ranks' if many else 'rank'} {fold(ranks)} {ended}")
