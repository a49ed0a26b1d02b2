"""`dap-mux run -- LAUNCHER`: a launcher starts the ranks, and the session owns the job."""

from __future__ import annotations

import dataclasses
import signal
import socket
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from dap_mux.cluster.framework_source import MetCluster, met_clusters, python_with
from dap_mux.cluster.job import ForeignProcess
from dap_mux.cluster.launcher import STOP_TIMEOUT_S, LaunchedJob, LauncherJob, RankReport
from dap_mux.cluster.records import RankRecord
from dap_mux.cluster.tunnel import run_command
from dap_mux.engine import Settings, inputs
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.errors import DapMuxError, NothingToConnect, UsageError
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import RankId
from dap_mux.session.dial_out import dial_variables
from dap_mux.session.end_of_job import KEEP_OUTPUT, Missing, hold_text
from dap_mux.session.job import (
    FILES_PER_OWN_RANK,
    InlineConsole,
    Job,
    entry_line,
    greet,
    launched_program,
    rank_variables,
    with_processes,
)
from dap_mux.session.rank_sources import RankSources
from dap_mux.session.session import Session, endpoint_of, open_session, settings_of
from dap_mux.session.terminal_output import Echo, say, set_up_log
from dap_mux.system.config import Config, LaunchOptions
from dap_mux.system.config.options import Address
from dap_mux.system.temporary_folders import log_folder

if TYPE_CHECKING:
    from dap_mux.pure.insight.ended import Ended

# The clusters that a launched job meets become part of its session.


async def join_clusters(session: Session, rendezvous: Path) -> None:
    """Follow each cluster that a driver names, until cancelled."""
    async with anyio.create_task_group() as tasks:
        async for cluster in met_clusters(rendezvous):
            tasks.start_soon(_follow, session, cluster)


async def _follow(session: Session, cluster: MetCluster) -> None:
    try:
        cluster.check_python()
        sources = await RankSources.of_source(cluster.named)
    except DapMuxError as error:
        session.tell(f"{error}; its workers run without a debugger")
        cluster.let_driver_go_on()
        return
    sources.announce_ranks(session)
    with anyio.CancelScope() as scope:
        await sources.run(session, scope.cancel)


LOOPBACK = ("127.0.0.1", "::1")
OWN_FAILURE_CODE = 125
FINAL_MESSAGES_TIMEOUT_S = 2.0  # for ranks' last messages, after their launcher has ended
NO_RANK_WARNING_S = 30.0
_HOW_RANKS_ARE_FOUND = (
    "dap-mux recognizes a rank by the variables that launchers set (RANK and the like), or when "
    "the program calls torch.distributed.init_process_group, jax.distributed.initialize, MPI's "
    "initialization or dap_mux.listen(). For a script without a launcher: dap-mux run -n N SCRIPT"
)
NO_RANK_AT_ALL = (
    f"the launcher ended, and none of its Python processes was a rank: {_HOW_RANKS_ARE_FOUND}"
)
NO_RANK_YET = f"no rank has started within {{:g}} s: {_HOW_RANKS_ARE_FOUND}"


async def run_launcher(options: LaunchOptions, console: InlineConsole | None = None) -> int:
    """Start the launcher, serve its ranks, and return its own exit code."""
    set_up_log(options.config.verbosity, options.config.log_dir, options.config.log)
    if console is None or not console.takes_terminal:
        return await _run_launcher(options, console, None)
    with log_folder(options.config.log_dir) as log_dir:  # the console has the terminal
        return await _run_launcher(options, console, log_dir / "launcher.log")


async def _run_launcher(
    options: LaunchOptions, console: InlineConsole | None, output: Path | None
) -> int:
    config = options.config
    job = LauncherJob(
        command=options.command,
        base_port=config.base_port,
        wait=config.wait,
        output=output,
        cwd=Path.cwd(),
        hold=hold_text(options.hold),
        variables=rank_variables(options),
    )
    job.program()
    kept = KEEP_OUTPUT if options.output_json else {}
    dial = config.dial_listen
    if dial.host in LOOPBACK:
        dial = Address(dial.host, 0)  # ranks learn the port from us, so any will do
    avoid = range(config.base_port, config.base_port + 1024)
    settings = launcher_settings(config, options.command, options.name)
    entry = entry_line(launched_program(options.command)) if config.wait else {}
    async with (
        open_session(config, settings, avoid=avoid, entry=entry) as session,
        dial_variables(session, config, dial if options.dial else None) as variables,
        LaunchedJob(dataclasses.replace(job, env={**variables, **kept})) as launched,
    ):
        text = f"one session for the ranks of {settings.job_name} on {session.address}"
        await greet(session, settings.job_name, text, waits=config.wait, console=bool(console))
        echo, why_after = Echo({output: ""}) if output else None, options.why_after
        ranks = LauncherRanks(
            session, launched, dial=options.dial, console=console, echo=echo, why_after=why_after
        )
        code = await ranks.run()
        ranks.report_end(code, options)
        if options.output_json:
            ranks.write_output(options.output_json)
        return code


def launcher_settings(config: Config, command: tuple[str, ...], name: str = "") -> Settings:
    """Return the engine's settings for a job whose ranks a launcher starts."""
    settings = settings_of(config, owns_job=True)
    return replace(settings, lingers=inf, job_name=name or Path(command[0]).name)


@dataclasses.dataclass(eq=False)
class LauncherRanks(Job):
    """The launcher and the ranks that it starts, reported to the engine."""

    target = "the launcher"
    notices = ("passed on to the launcher", "passed on to the launcher")
    started: LaunchedJob

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ranks: dict[RankId, ForeignProcess | None] = {}
        self._reported: set[RankId] = set()

    async def serve(self) -> int:
        """Follow the ranks until the launcher has ended; return its exit code."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report_ranks, tasks)
            tasks.start_soon(join_clusters, self.session, self.started.rendezvous)
            code = await self._until_ended()
            await self._end(code)
            tasks.cancel_scope.cancel()
        return code

    async def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """Ask the launcher to end its job, and kill it after `STOP_TIMEOUT_S`."""
        await self.started.stop(first)

    async def start_again(self, to: str) -> None:
        """Start the launcher again. Raises UsageError."""
        del to  # a replay has none
        self._reported.clear()
        self.started.start()

    def running(self) -> dict[RankId, int]:
        """Return those of this machine that run."""
        return {id: one.pid for id, one in self._ranks.items() if one is not None and one.alive()}

    def missing(self) -> Missing:
        """Return the ranks without files, and the launcher's failure."""
        missing = [id for id in self._ranks if id not in self._reported]
        hosts = self.session.driver.engine.hosts() if self.dial else {}
        unseen = {id: hosts[id] for id in missing if id in hosts}
        gone = [id for id in missing if id not in unseen]
        return Missing(gone, unseen, self._failed_launcher())

    def write_output(self, path: Path) -> None:
        """Write what the ranks have printed."""
        self._endings.write_output(path)

    def _failed_launcher(self) -> Ended | None:
        return self._endings.of_launcher(self.started.rendezvous)

    def signal_again(self, number: signal.Signals) -> None:
        """Pass it on as well."""
        self.started.send_signal(number)

    def still_running(self) -> str:
        """Return the launcher and its ranks, as far as they have not ended."""
        if not self.started.runs:
            return ""
        left = self.running()
        ranks = f" and {with_processes(left)}" if left else ""
        return (
            f"the launcher (process {self.started.pid}){ranks} to end; killed after "
            f"{STOP_TIMEOUT_S:g} s, and another Ctrl-C is passed on to the launcher, too"
        )

    async def _until_ended(self) -> int:
        """Wait for the launcher's end, and again after each restart."""
        while True:
            self.session.launcher = self.started.pid
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.stop_for_restart)
                tasks.start_soon(self._warn_without_ranks)
                code = await self.started.ended()
                tasks.cancel_scope.cancel()
            self.session.launcher_ended(code)
            if not self.restarting:
                return code if code >= 0 else 128 - code
            if not await self.restart():
                return OWN_FAILURE_CODE

    async def _warn_without_ranks(self) -> None:
        await anyio.sleep(NO_RANK_WARNING_S)
        if not self.session.driver.engine.knows_ranks:
            self.session.tell(NO_RANK_YET.format(NO_RANK_WARNING_S))

    async def _end(self, code: int) -> None:
        """The launcher's end is the job's; ranks that still run are released."""
        if not self.session.driver.engine.knows_ranks and (
            not code or self._failed_launcher() is None
        ):
            self.session.tell(NO_RANK_AT_ALL)
        self.session.driver.feed(inputs.JobEnded(code))
        with anyio.move_on_after(FINAL_MESSAGES_TIMEOUT_S):
            await self.session.driver.finished.wait()
        if self.session.driver.finished.is_set():
            await self.session.over()
            return
        say(f"the launcher has ended; {self._left_behind()}")
        await self.session.release("the launcher has ended")

    def _left_behind(self) -> str:
        """Describe the ranks that outlive their launcher."""
        left = self.session.driver.engine.not_gone()
        processes = {id: self._ranks.get(id) for id in left}
        pids = {id: process.pid if process else None for id, process in processes.items()}
        still = (
            "are still running, and continue"
            if len(left) > 1
            else "is still running, and continues"
        )
        return f"{with_processes(pids)} {still} without a debugger"

    async def _report_ranks(self, tasks: TaskGroup) -> None:
        async for report in self.started.reports():
            record, process = report.record, report.process
            id = self._id_of(record)
            self._announce_group(id[0], record.world_size or 0)
            self._ranks[id] = process
            self._reported.add(id)
            if not self.dial:  # else its reverse connection brings the same
                self.session.rank_known(*id, self._endpoint(report))
            if process is not None:
                tasks.start_soon(self._watch, id, process)
            else:
                file = self.started.failure_file(report.host, report.pid)
                self._endings.note_elsewhere(id, report.host, report.pid, file)

    def _endpoint(self, report: RankReport) -> Endpoint:
        record = report.record
        endpoint = replace(endpoint_of(record), watched=report.process is not None)
        if report.host == socket.gethostname() or record.host not in LOOPBACK:
            return endpoint
        self.session.tell(f"rank {record.rank} {_out_of_reach(report)}")
        return replace(endpoint, way_down=_out_of_reach(report))

    def _id_of(self, record: RankRecord) -> RankId:
        """Put the ranks of a second launcher in the same job into a group of their own."""
        assert record.rank is not None
        group, number = record.group, 1
        while (process := self._ranks.get((group, record.rank))) and process.alive():
            number += 1
            group = f"{record.group}-{number}"
        return group, record.rank

    def _announce_group(self, group: str, size: int) -> None:
        """Show all ranks of a group as soon as the first has reported the size."""
        if not self.dial:
            self.session.expect(size, files=FILES_PER_OWN_RANK)
        for rank in range(size):
            id = (group, rank)
            if id not in self._ranks:
                self._ranks[id] = None
                port = self.started.job.base_port + rank
                if not self.dial:
                    self.session.rank_known(*id, Endpoint(LOOPBACK[0], port, announces=True))

    async def _watch(self, id: RankId, process: ForeignProcess) -> None:
        """Report the end of a rank's process; its exit code is known where it is the launcher."""
        file = self.started.failure_file(socket.gethostname(), process.pid)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._failures.follow, lambda: [(id, file)])
            seen = await process.ended()
            tasks.cancel_scope.cancel()
        if self._ranks[id] is process:
            self._failures.look(id, file)
            reason = self._exit_reasons.if_killed_for_memory(process.pid)
            own = process.pid == self.started.pid
            code = await self.started.ended() if own else None
            in_words = reason if seen is None else self._exit_reasons.of(process.pid, seen)
            self._endings.note(id, process.pid, seen if code is None else code, in_words, file)
            if not self.dial:  # else its reverse connection tells, which may be another's by now
                self.session.driver.feed(inputs.RankExited(id, code, reason, self.ending))


def _out_of_reach(report: RankReport) -> str:
    return (
        f"runs on {report.host} and listens on {report.record.endpoint} there, which this session "
        "cannot reach: with `dap-mux run --dial`, ranks on other machines connect to the session "
        "(docs/dial-out.md)"
    )


# `dap-mux rerun`: a task of a cluster runs again on this machine, as a rank of its own session.

DASK: Final = "dask:"
CHECK_TIMEOUT_S: Final = 60.0
MAX_REASON: Final = 1000  # characters of the reason
RERUN_GROUP: Final = "rerun"
# Not in our own environment: what is there is no news to a rank.
_AS_RANK: Final = ("env", "RANK=0", "WORLD_SIZE=1", f"DAP_MUX_GROUP={RERUN_GROUP}")


async def rerun_task(config: Config, key: str, endpoint: str) -> int:
    """Run the task `key` of the cluster at `endpoint` (`dask:tcp://HOST:8786`) as a rank.

    Returns its process's exit code. Raises `DapMuxError`.
    """
    if not endpoint.startswith(DASK):
        raise UsageError(f"{endpoint}: not a Dask cluster; one looks like dask:tcp://HOST:8786")
    python = await python_with("distributed", config.python)
    program = Path(__file__).parents[1] / "rank" / "frameworks" / "dask_rerun.py"
    command = (python, str(program), endpoint.removeprefix(DASK), key)
    found = await run_command((*command, "check"), within=CHECK_TIMEOUT_S)
    if found.code != 0:
        raise NothingToConnect(one_line(found.err.strip().rpartition("\n")[2])[:MAX_REASON])
    launched = LaunchOptions(config, (*_AS_RANK, *command), name=key, hold="on")
    return await run_launcher(launched)
