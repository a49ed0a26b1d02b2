"""`dap-mux run -- LAUNCHER`: somebody else starts the ranks, and the session owns the job."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from dap_mux.cluster.exit_reasons import ExitReasons
from dap_mux.cluster.foreign_process import ForeignProcess
from dap_mux.cluster.launcher import STOP_TIMEOUT_S, LaunchedJob, LauncherJob, RankReport
from dap_mux.cluster.records import RankRecord
from dap_mux.config import Config, LaunchOptions
from dap_mux.config.values import Address
from dap_mux.engine import Settings, inputs
from dap_mux.engine.endpoint import Endpoint
from dap_mux.errors import UsageError
from dap_mux.rank_sets import RankId, fold
from dap_mux.session.announcement import announce
from dap_mux.session.dial_out import accept_reverse
from dap_mux.session.failure_reports import POLL_INTERVAL_S, FailureReports
from dap_mux.session.local_job import (
    FILES_PER_OWN_RANK,
    STOP_NOTICE_S,
    InlineConsole,
    with_processes,
)
from dap_mux.session.session import Session, endpoint_of, open_session, settings_of
from dap_mux.session.terminal_output import Echo, say, set_up_log
from dap_mux.temporary_folders import log_folder

LOOPBACK = ("127.0.0.1", "::1")
OWN_FAILURE_CODE = 125
FINAL_MESSAGES_TIMEOUT_S = 2.0  # s for what ranks still have to say when their launcher has ended
NO_RANK_WARNING_S = 30.0  # s
_HOW_RANKS_ARE_FOUND = (
    "dap-mux knows a rank by the variables that launchers set (RANK and the like), or when the "
    "program calls torch.distributed.init_process_group, jax.distributed.initialize, MPI's "
    "initialisation or dap_mux.listen(). A script without a launcher: dap-mux run -n N SCRIPT"
)
NO_RANK_AT_ALL = (
    f"the launcher ended, and none of its Python processes was a rank: {_HOW_RANKS_ARE_FOUND}"
)
NO_RANK_YET = (
    f"no rank has come within {{:g}} s, and nothing can be debugged yet: {_HOW_RANKS_ARE_FOUND}"
)


async def run_launcher(options: LaunchOptions, console: InlineConsole | None = None) -> int:
    """Start the launcher, serve its ranks, and return its own exit code."""
    set_up_log(options.config.verbosity, options.config.log_dir)
    if console is None:
        return await _run_launcher(options, None, None)
    with log_folder(options.config.log_dir) as log_dir:  # the terminal is the console's
        return await _run_launcher(options, console, log_dir / "launcher.log")


async def _run_launcher(
    options: LaunchOptions, console: InlineConsole | None, output: Path | None
) -> int:
    config = options.config
    job = launcher_job(config, options.command, output)
    job.program()
    avoid = range(config.base_port, config.base_port + 1024)
    settings = launcher_settings(config, options.command)
    async with (
        open_session(config, settings, avoid=avoid) as session,
        _calls(session, config, dial=options.dial) as told,
        LaunchedJob(replace(job, env=told)) as launched,
    ):
        announced = console is None and await announce(session.file, settings.job_name)
        say(f"one session for the ranks of {settings.job_name} on {session.address}")
        if config.wait and console is None and not announced:
            say('ranks wait for a debugger: in VS Code start "Remote Attach to Cluster"')
        return await LauncherRun(session, launched, console=console, dial=options.dial).run()


@asynccontextmanager
async def _calls(session: Session, config: Config, *, dial: bool) -> AsyncIterator[dict[str, str]]:
    """Take the calls of ranks, wherever the launcher starts them; what their environment says."""
    if not dial:
        yield {}
        return
    at = config.dial_listen
    if at.host in LOOPBACK:
        at = Address(at.host, 0)  # they are told: two jobs may call side by side
    async with accept_reverse(session, config, at, None) as door:
        yield door.environment


def launcher_job(config: Config, command: tuple[str, ...], output: Path | None) -> LauncherJob:
    """Return what to start, from the configuration."""
    return LauncherJob(
        command=command,
        base_port=config.base_port,
        wait=config.wait,
        output=output,
        cwd=Path.cwd(),
    )


def launcher_settings(config: Config, command: tuple[str, ...]) -> Settings:
    """Return what the engine needs to know of a job whose ranks a launcher starts."""
    settings = settings_of(config, owns_job=True)
    return replace(settings, lingers=inf, job_name=Path(command[0]).name)


class LauncherRun:
    """The launcher that we have started, and its ranks, as the session sees them.

    `terminal`: a person has started it, whose Ctrl-C ends it.
    """

    def __init__(
        self,
        session: Session,
        launched: LaunchedJob,
        *,
        terminal: bool = True,
        console: InlineConsole | None = None,
        dial: bool = False,
    ) -> None:
        self._session = session
        self._dial = dial
        self._launched = launched
        self._terminal = terminal
        self._console = console
        output = launched.job.output if console else None  # an editor hears what ranks print
        self._echo = Echo.of_file(output) if output else Echo(())
        self._failures, self._ends = FailureReports(session), ExitReasons()
        self._signal: signal.Signals | None = None
        self._stop = anyio.Event()
        self._again = anyio.Event()
        self._ranks: dict[RankId, ForeignProcess | None] = {}
        session.driver.end_job = self._stop.set
        session.driver.restart_job = lambda: self._again.set()  # noqa: PLW0108  (made anew)

    @property
    def ending(self) -> bool:
        """Whether somebody has asked for the end."""
        return self._signal is not None or self._stop.is_set()

    async def run(self) -> int:
        """Serve until the launcher has ended; return its exit code as a shell would show it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear_ranks, tasks)
            tasks.start_soon(self._heed_clients)
            if self._terminal:
                tasks.start_soon(self._heed_signals, tasks)
            if self._console:
                tasks.start_soon(self._console.run)
                tasks.start_soon(self._echo.follow)
            code = await self._see_it_through()
            await self._end(code)
            tasks.cancel_scope.cancel()
        self._echo.catch_up(final=True)
        return 128 + self._signal if self._signal is not None else code

    async def _see_it_through(self) -> int:
        """Wait for the launcher's end, and again whenever a client has the job restarted."""
        while True:
            self._again = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop_to_restart)
                tasks.start_soon(self._say_that_no_rank_comes)
                code = await self._launched.ended()
                tasks.cancel_scope.cancel()
            if not self._again.is_set():
                return code if code >= 0 else 128 - code
            problem = ""
            try:
                self._launched.start()
            except UsageError as error:
                problem = str(error)
            self._session.driver.feed(inputs.JobRestarted(problem))
            if problem:
                return OWN_FAILURE_CODE

    async def _say_that_no_rank_comes(self) -> None:
        await anyio.sleep(NO_RANK_WARNING_S)
        if not self._session.knows_ranks:
            self._tell(NO_RANK_YET.format(NO_RANK_WARNING_S))

    async def _stop_to_restart(self) -> None:
        await self._again.wait()
        say("the debugger asked to restart the job: stopping the launcher")
        await self._launched.stop()

    async def _end(self, code: int) -> None:
        """The launcher has ended: so has the job, and who still runs is let go."""
        if not self._session.knows_ranks:
            self._tell(NO_RANK_AT_ALL)
        self._session.driver.feed(inputs.JobEnded(code))
        with anyio.move_on_after(FINAL_MESSAGES_TIMEOUT_S):
            await self._session.driver.finished.wait()
        if self._session.driver.finished.is_set():
            await self._session.over()
            return
        say(f"the launcher has ended; {self._left_behind()}")
        await self._session.release("the launcher has ended")

    def _left_behind(self) -> str:
        """Which ranks are still there, and what is known of them."""
        left = self._session.driver.engine.core.not_gone()
        pids = {id: process.pid for id in left if (process := self._ranks.get(id)) is not None}
        many = len(left) > 1
        texts = [f"{'ranks' if many else 'rank'} {fold(left)}"]
        if pids:
            which = ", ".join(str(pid) for pid in pids.values())
            texts.append(f"({'processes' if len(pids) > 1 else 'process'} {which})")
        still = "are still there, and run on" if many else "is still there, and runs on"
        return f"{' '.join(texts)} {still} without a debugger"

    # Ranks

    async def _hear_ranks(self, tasks: TaskGroup) -> None:
        async for report in self._launched.reports():
            record, process = report.record, report.process
            if self._dial:
                continue  # its call has said all that
            endpoint = replace(endpoint_of(record), watched=process is not None)
            if report.host != socket.gethostname() and record.host in LOOPBACK:
                self._tell(f"rank {record.rank} {_elsewhere(report)}")
                endpoint = replace(endpoint, way_down=_elsewhere(report))
            id = self._id_of(record)
            self._introduce(id[0], record.world_size or 0)
            self._ranks[id] = process
            self._session.rank_known(*id, endpoint)
            if process is not None:
                tasks.start_soon(self._watch, id, process)

    def _id_of(self, record: RankRecord) -> RankId:
        """Two launchers in one job have the same ranks: who comes second is of another group."""
        assert record.rank is not None
        group, number = record.group, 1
        while (process := self._ranks.get((group, record.rank))) and process.alive():
            number += 1
            group = f"{record.group}-{number}"
        return group, record.rank

    def _introduce(self, group: str, size: int) -> None:
        """The first rank says how many there are: the others are shown, and left alone."""
        self._session.expect(size, files=FILES_PER_OWN_RANK)
        for rank in range(size):
            id = (group, rank)
            if id not in self._ranks:
                self._ranks[id] = None
                port = self._launched.job.base_port + rank
                self._session.rank_known(*id, Endpoint(LOOPBACK[0], port, announces=True))

    async def _watch(self, id: RankId, process: ForeignProcess) -> None:
        """See a rank's process end; the launcher alone knows its exit code."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._heed_failure, id, process)
            await process.ended()
            tasks.cancel_scope.cancel()
        if self._ranks[id] is process:
            self._failures.look(id, self._launched.failure_file(process))
            how = self._ends.if_killed_for_memory(process.pid)
            self._session.driver.feed(inputs.RankExited(id, None, how, self.ending))

    async def _heed_failure(self, id: RankId, process: ForeignProcess) -> None:
        while True:
            self._failures.look(id, self._launched.failure_file(process))
            await anyio.sleep(POLL_INTERVAL_S)

    # Whoever wants the end

    async def _heed_signals(self, tasks: TaskGroup) -> None:
        """Ctrl-C and SIGTERM go to the launcher, each once; the exit code says so."""
        while True:
            number = await self._session.interrupted()
            if number is signal.SIGINT and self._console and self._console.interrupt():
                continue
            say(f"{number.name}: passed on to the launcher")
            if self._signal is None:
                tasks.start_soon(self._launched.stop, number)
                tasks.start_soon(self._say_what_is_waited_for)
            else:
                self._launched.send_signal(number)
            self._signal = number

    async def _say_what_is_waited_for(self) -> None:
        await anyio.sleep(STOP_NOTICE_S)
        if not self._launched.runs:
            return
        left = {id: one.pid for id, one in self._ranks.items() if one is not None and one.alive()}
        ranks = f" and {with_processes(left)}" if left else ""
        say(
            f"waiting for the launcher (process {self._launched.pid}){ranks} to end; killed after "
            f"{STOP_TIMEOUT_S:g} s, and another Ctrl-C is passed on to the launcher, too"
        )

    async def _heed_clients(self) -> None:
        await self._stop.wait()
        say("the debugger asked to end the job: stopping the launcher")
        await self._launched.stop()

    def _tell(self, text: str) -> None:
        say(text)
        self._session.driver.feed(inputs.Notice(text))


def _elsewhere(report: RankReport) -> str:
    return (
        f"runs on {report.host} and listens on {report.record.endpoint} there, which this session "
        "cannot reach: with `dap-mux run --dial` ranks on other machines call it (docs/dial-out.md)"
    )
