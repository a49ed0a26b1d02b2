"""N ranks on this machine, each a process under the in-rank agent."""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from dap_mux.cluster.job import Job, RankProcess
from dap_mux.pure.errors import UsageError
from dap_mux.rank.environ import REPLAY_STORE
from dap_mux.rank.ready import failure_file
from dap_mux.rank.start.run_module import LENT
from dap_mux.system.programs import lent_packages, module_command, restore_limit
from dap_mux.system.temporary_folders import RANKS, hold, temporary_folder

LOOPBACK = "127.0.0.1"
_NON_EPHEMERAL_PORTS = range(10_000, 20_000)  # by default on Linux, macOS and Windows
_MAX_TRIES = 20


@dataclass(frozen=True, kw_only=True)
class LocalJob(Job):
    """What to run. `command` is a script and its arguments, or `-m`, a module and its own."""

    world_size: int
    log_dir: Path
    python: str = sys.executable
    python_args: tuple[str, ...] = ()
    """Options of Python itself, such as `-X dev`."""
    only: tuple[int, ...] = ()
    """The ranks that are started; (): all."""

    def agent_command(self, ready_file: Path) -> list[str]:
        """Return the command line of each rank, whose number is in its environment."""
        options = ["--base-port", str(self.base_port), "--ready-file", str(ready_file)]
        options += ["--wait" if self.wait else "--no-wait", "--on-timeout", "exit"]
        if self.stop_on_entry:
            options.append("--stop-on-entry")
        agent = [self.python, *self.python_args, *module_command("dap_mux.rank")]
        return [*agent, *options, *self.command]

    def environment(self, rank: int, master_port: int) -> dict[str, str]:
        """Return the environment of one rank, as torchrun on one node would set it."""
        return {
            **self.inherited(),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.world_size),
            "MASTER_ADDR": LOOPBACK,
            "MASTER_PORT": str(master_port),
            "PYTHONUNBUFFERED": "1",
            **({REPLAY_STORE: self.store(master_port)} if len(self.only) > 1 else {}),
            **({} if self.python == sys.executable else {LENT: lent_packages()}),
        }

    def store(self, master_port: int) -> str:
        """Return the file by which ranks that are replayed together find each other."""
        return str(self.log_dir.absolute() / f"together-{master_port}")

    @property
    def ranks(self) -> Sequence[int]:
        """The ranks that are started."""
        return self.only or range(self.world_size)


def job_python(wanted: Path | None, environ: Mapping[str, str]) -> str:
    """Return the Python of the ranks: `wanted`, or that of the active environment, or our own.

    Raises UsageError. The base environment of conda is nobody's choice, so it does not count.
    """
    if wanted is not None:
        if shutil.which(wanted) is None:
            raise UsageError(f"--python {wanted}: there is no such program")
        return str(wanted)
    conda = environ.get("CONDA_PREFIX") if environ.get("CONDA_DEFAULT_ENV") != "base" else None
    for folder in filter(None, (environ.get("VIRTUAL_ENV"), conda)):
        python = Path(folder, "bin", "python")
        if python.is_file() and Path(folder).resolve() != Path(sys.prefix).resolve():
            return str(python)
    return sys.executable


# Each rank has a session and process group of its own, so that a Ctrl-C in the terminal reaches
# only us, and writes its output to a log file, so that it is not affected when we end. If we are
# killed the ranks continue: a debugger that dies must not take the job with it.
class LocalCluster:
    """The running ranks. `async with` starts all at once, and stops the rest at its end."""

    def __init__(self, job: LocalJob) -> None:
        self.job = job
        self.ranks: list[RankProcess] = []
        self.finished: list[int] = []
        """The ranks that have ended, first to last."""
        self._left_running = False
        self._watches: list[anyio.CancelScope] = []

    async def __aenter__(self) -> LocalCluster:
        self._folder = temporary_folder(RANKS)
        self._ready_dir = self._folder.__enter__()
        self.job.log_dir.mkdir(parents=True, exist_ok=True)
        for rank in self.job.ranks:
            self._log_of(rank).write_bytes(b"")  # one log for this job and its restarts
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        try:
            self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._left_running:
            for watch in self._watches:
                watch.cancel()
        else:
            with anyio.CancelScope(shield=True):
                await self.stop()
        try:
            # Not given the error, which the group would wrap: it belongs to the caller.
            await self._tasks.__aexit__(None, None, None)
        finally:
            for rank in self.ranks:
                rank.disown()
            shutil.rmtree(self._ready_dir, ignore_errors=True)
            self._folder.__exit__(None, None, None)

    async def wait_all(self) -> dict[int, int]:
        """Return each rank's exit code, -n for signal n, once all have ended."""
        return {rank.rank: await rank.wait() for rank in self.ranks}

    async def stop(self, first: signal.Signals = signal.SIGTERM, grace: float = 5) -> None:
        """End every rank within about `grace` seconds: send `first`, then SIGTERM, then SIGKILL.

        SIGINT as `first` repeats a Ctrl-C, on which Python prints a traceback.
        """
        half = grace / 2
        for number, patience in (
            (first, half),
            (signal.SIGTERM, half),
            (signal.SIGKILL, grace),
        ):
            for rank in self.ranks:
                rank.stop(number)
            with anyio.move_on_after(patience):
                await self.wait_all()
                return

    async def restart(self) -> None:
        """End every rank and start it again; logs are continued. Raises UsageError."""
        await self.stop()
        for ranks in (self.ranks, self._watches, self.finished):
            ranks.clear()
        self._start()

    def leave_running(self) -> None:
        """Do not stop the ranks when the `async with` block ends."""
        self._left_running = True

    def _start(self) -> None:
        master_port = _free_port()
        Path(self.job.store(master_port)).unlink(missing_ok=True)
        for rank in self.job.ranks:
            process = self._spawn(rank, master_port)
            # Shielded: a cancelled block must still stop the ranks and see them end.
            watch = anyio.CancelScope(shield=True)
            self.ranks.append(process)
            self._watches.append(watch)
            self._tasks.start_soon(self._watch, process, watch)

    async def _watch(self, process: RankProcess, watch: anyio.CancelScope) -> None:
        with watch:
            await process.watch()
            self.finished.append(process.rank)

    def _log_of(self, rank: int) -> Path:
        return self.job.log_dir / f"rank-{rank}.log"

    def _spawn(self, rank: int, master_port: int) -> RankProcess:
        log_path = self._log_of(rank)
        ready_file = self._ready_dir / f"rank-{rank}.json"
        ready_file.unlink(missing_ok=True)
        failure_file(ready_file).unlink(missing_ok=True)
        command = self.job.agent_command(ready_file)
        with log_path.open("ab") as log:
            hold(log)
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self.job.cwd,
                    env=self.job.environment(rank, master_port),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=restore_limit,  # noqa: PLW1509  (takes no lock)
                )
            except OSError as error:
                raise UsageError(
                    f"cannot start rank {rank}: {error.filename}: {error.strerror}"
                ) from error
        return RankProcess(rank, process, log_path, ready_file)


def job_exit_code(codes: Mapping[int, int], finished: Sequence[int] = ()) -> int:
    """Return one exit code for the job: 0 if all are, otherwise that of the first rank to fail
    in the order `finished`, or else of the lowest. Signal n counts as 128 + n, as in a shell.
    """
    order = [*finished, *sorted(codes)]
    failed = (codes[rank] for rank in order if codes.get(rank, 0) != 0)
    code = next(failed, 0)
    return code if code >= 0 else 128 - code


def _free_port() -> int:
    """Find a port for rank 0 to listen on, which it does only once its program runs.

    Before that the ranks connect to their adapters from ephemeral ports, so avoid those if
    possible.
    """
    for wanted in (*random.sample(_NON_EPHEMERAL_PORTS, _MAX_TRIES), 0):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, wanted))
            port: int = probe.getsockname()[1]
            return port
    raise UsageError("no port is free for MASTER_PORT")
