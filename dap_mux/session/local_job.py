"""`dap-mux run`: local ranks, and a session over them that owns the job."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import anyio

from dap_mux.cluster.exit_reasons import ExitReasons
from dap_mux.cluster.local import (
    LocalCluster,
    LocalJob,
    RankEnded,
    RankProcess,
    describe_exit,
    job_exit_code,
)
from dap_mux.config import Config, RunOptions
from dap_mux.config.values import Address
from dap_mux.engine import inputs
from dap_mux.engine.endpoint import Endpoint
from dap_mux.errors import UsageError
from dap_mux.rank_sets import RankId, fold
from dap_mux.session.announcement import announce
from dap_mux.session.dial_out import ADDRESS, accept_reverse
from dap_mux.session.failure_reports import POLL_INTERVAL_S, FailureReports
from dap_mux.session.session import Session, endpoint_of, open_session, settings_of
from dap_mux.session.terminal_output import Echo, say, set_up_log
from dap_mux.temporary_folders import log_folder

GROUP = "job"
STOP_TIMEOUT_S = 5.0  # for ranks to end, before they are killed
STOP_NOTICE_S = 1.0  # a job that has not ended by then is told to hang
LOOPBACK = "127.0.0.1"
FILES_PER_OWN_RANK = (
    2  # files that are open for a rank that we have started: its process, and debugpy's port
)


class InlineConsole(Protocol):
    """Somebody at the job's terminal, with a client of the session: the console."""

    async def run(self) -> None:
        """Talk with the user, until one of them leaves; must not raise."""

    def interrupt(self) -> bool:
        """Take a Ctrl-C; False where it is meant for the job."""


async def run_job(options: RunOptions, console: InlineConsole | None = None) -> int:
    """Start the ranks, serve them, and return the job's own exit code."""
    set_up_log(options.config.verbosity, options.config.log_dir)
    with log_folder(options.config.log_dir) as log_dir:
        return await _run_job(options, console, log_dir)


async def _run_job(options: RunOptions, console: InlineConsole | None, log_dir: Path) -> int:
    config = options.config
    job = local_job(config, options.command, options.world_size, log_dir)
    settings = replace(settings_of(config, owns_job=True), job_name=job_name(options.command))
    ports = range(config.base_port, config.base_port + options.world_size)
    async with (
        open_session(config, settings, avoid=ports) as session,
        _calls(session, config, dial=options.dial) as told,
        LocalCluster(replace(job, env={**job.env, **told})) as cluster,
    ):
        announced = console is None and await announce(session.file, settings.job_name)
        _greet(session, job, waits=job.wait and console is None and not announced)
        job_run = Job(session, cluster, console=console, dial=options.dial)
        job_run.announce_ranks()
        code = await job_run.run()
    _report(cluster)
    return code


@asynccontextmanager
async def _calls(session: Session, config: Config, *, dial: bool) -> AsyncIterator[dict[str, str]]:
    """Take the ranks' calls, if they are to call; what their environment then says."""
    if not dial:
        # A DAP_MUX_DIAL of the user's own is for other ranks than those of this session.
        yield {ADDRESS: ""} if ADDRESS in os.environ else {}
        return
    async with accept_reverse(session, config, Address(LOOPBACK, 0), {}, ours=True) as door:
        yield door.environment


def job_name(command: tuple[str, ...]) -> str:
    """Return what the job is called: its script or module."""
    return command[1] if command[0] == "-m" else command[0]


def local_job(config: Config, command: tuple[str, ...], size: int, log_dir: Path) -> LocalJob:
    """Return what to start, from the configuration."""
    return LocalJob(
        command=command,
        world_size=size,
        base_port=config.base_port,
        wait=config.wait,
        log_dir=log_dir,
        cwd=Path.cwd(),
    )


class Job:
    """The ranks that we have started, as the session sees them.

    `terminal`: a person has started them, who sees what they print and whose Ctrl-C ends them.
    """

    def __init__(
        self,
        session: Session,
        cluster: LocalCluster,
        *,
        terminal: bool = True,
        console: InlineConsole | None = None,
        dial: bool = False,
    ) -> None:
        self._session = session
        self._dial = dial
        self._console = console
        self._cluster = cluster
        self._failures, self._ends = FailureReports(session), ExitReasons()
        self._signal: signal.Signals | None = None
        self._terminal = terminal
        self._echo = Echo(cluster.ranks if terminal else ())
        self._stop = anyio.Event()
        self._again = anyio.Event()
        session.driver.end_job = self._stop.set
        session.driver.restart_job = lambda: self._again.set()  # noqa: PLW0108  (made anew)

    async def run(self) -> int:
        """Serve until every rank has ended; return the job's exit code."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_all)
            tasks.start_soon(self._heed_failures)
            if self._terminal:
                tasks.start_soon(self._echo.follow)
                tasks.start_soon(self._heed_signals)
            if self._console:
                tasks.start_soon(self._console.run)
            tasks.start_soon(self._heed_clients)
            await self._session.over()
            tasks.cancel_scope.cancel()
        self._echo.catch_up(final=True)
        return self._code()

    def announce_ranks(self) -> None:
        """Tell the engine who will come; it leaves them alone until they say that they listen."""
        self._session.expect(len(self._cluster.ranks), files=FILES_PER_OWN_RANK)
        for rank in self._cluster.ranks:
            port = 0 if self._dial else self._port(rank)
            announced = Endpoint(
                LOOPBACK, port, pid=rank.pid, announces=True, dials=self._dial, watched=True
            )
            self._session.rank_known(GROUP, rank.rank, announced)

    def _code(self) -> int:
        if self._signal is not None:
            return 128 + self._signal
        return job_exit_code(exit_codes(self._cluster), self._cluster.finished)

    @property
    def ending(self) -> bool:
        """Whether somebody has asked for the end."""
        return self._signal is not None or self._stop.is_set()

    def _port(self, rank: RankProcess) -> int:
        return self._cluster.job.base_port + rank.rank

    async def _follow_all(self) -> None:
        """See the ranks through, and again whenever a client has the job restarted."""
        while True:
            async with anyio.create_task_group() as sources:
                for rank in self._cluster.ranks:
                    sources.start_soon(self._follow, rank)
                await self._again.wait()
                say("the debugger asked to restart the job: stopping every rank")
                await self._cluster.stop()
            self._again = anyio.Event()
            await self._restart()

    async def _restart(self) -> None:
        """Start every rank anew; the engine is told, also of a failure."""
        problem = ""
        try:
            await self._cluster.restart()
            self.announce_ranks()
        except UsageError as error:
            problem = str(error)
        self._session.driver.feed(inputs.JobRestarted(problem))

    async def _follow(self, rank: RankProcess) -> None:
        """See a rank through. In this order: the last rank's end is the end of this task too."""
        await self._announce(rank)
        code = await rank.wait()
        id = GROUP, rank.rank
        self._failures.look(id, rank.failure_file)
        ours = rank.being_stopped
        how = self._ends.of(rank.pid, code, by_us=ours)
        self._session.driver.feed(inputs.RankExited(id, code, how, ours))

    async def _heed_failures(self) -> None:
        while True:
            for rank in self._cluster.ranks:
                self._failures.look((GROUP, rank.rank), rank.failure_file)
            await anyio.sleep(POLL_INTERVAL_S)

    async def _announce(self, rank: RankProcess) -> None:
        """Wait for the rank to say where it listens, and tell the engine.

        Of a rank that calls the engine knows by its call.
        """
        try:
            record = await rank.ready()
        except RankEnded as error:
            if not (self.ending or self._again.is_set()):
                say(str(error))
                self._session.driver.feed(inputs.Notice(str(error)))
            return
        if self._dial:
            return
        if record.port != self._port(rank):
            say(f"rank {rank.rank}: port {self._port(rank)} is in use, took {record.port}")
        self._session.rank_known(GROUP, rank.rank, replace(endpoint_of(record), watched=True))

    async def _heed_signals(self) -> None:
        """Ctrl-C and SIGTERM end the job, as they would without us; the exit code says so."""
        number = await self._session.interrupted()
        while number is signal.SIGINT and self._console and self._console.interrupt():
            number = await self._session.interrupted()
        self._signal = number
        say(f"{self._signal.name}: stopping every rank")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._say_what_is_waited_for)
            tasks.start_soon(self._heed_second_signal)
            await self._cluster.stop(self._signal, STOP_TIMEOUT_S)
            tasks.cancel_scope.cancel()

    async def _say_what_is_waited_for(self) -> None:
        await anyio.sleep(STOP_NOTICE_S)
        left = {(GROUP, rank.rank): rank.pid for rank in self._cluster.ranks if rank.runs}
        say(
            f"waiting for {with_processes(left)} to end; killed after {STOP_TIMEOUT_S:g} s, "
            "or at once by another Ctrl-C"
        )

    async def _heed_second_signal(self) -> None:
        number = await self._session.interrupted()
        say(f"{number.name}: killing every rank")
        for rank in self._cluster.ranks:
            rank.stop(signal.SIGKILL)

    async def _heed_clients(self) -> None:
        await self._stop.wait()
        say("the debugger asked to end the job: stopping every rank")
        await self._cluster.stop()


def with_processes(ranks: Mapping[RankId, int | None]) -> str:
    """Return `ranks 0-1 (processes 41, 42)`: who is meant, and where they can be looked at."""
    pids = [str(pid) for pid in ranks.values() if pid is not None]
    name = f"{'ranks' if len(ranks) > 1 else 'rank'} {fold(ranks)}"
    return f"{name} ({'processes' if len(pids) > 1 else 'process'} {', '.join(pids)})"


def exit_codes(cluster: LocalCluster) -> dict[int, int]:
    """Return the exit codes of the ranks that have ended."""
    return {r.rank: r.exit_code for r in cluster.ranks if r.exit_code is not None}


def _greet(session: Session, job: LocalJob, *, waits: bool) -> None:
    ranks = "1 rank" if job.world_size == 1 else f"{job.world_size} ranks"
    say(f"one session for {ranks} on {session.address}; logs in {job.log_dir}")
    if waits:
        say('waiting for a debugger: in VS Code start "Remote Attach to Cluster"')


def _report(cluster: LocalCluster) -> None:
    """Say how each rank ended, equal ends folded."""
    ends: dict[str, list[RankId]] = defaultdict(list)
    for rank, code in sorted(exit_codes(cluster).items()):
        ends[describe_exit(code)].append((GROUP, rank))
    for end, ranks in ends.items():
        many = len(ranks) > 1
        ended = end.replace("was ", "were ") if many else end
        say(f"{'ranks' if many else 'rank'} {fold(ranks)} {ended}")
