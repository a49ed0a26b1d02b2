"""`dap-mux adapter`: DAP on standard input and output, as an editor starts a debug adapter.

The editor's `attach` says where the ranks listen, its `launch` what to start. Other clients may
join by the port, like in any session.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from dap_mux.cluster.local import LocalCluster, LocalJob
from dap_mux.config import AdapterOptions, Config
from dap_mux.engine import inputs
from dap_mux.engine.outputs import FindRanks
from dap_mux.errors import DapMuxError, UsageError
from dap_mux.session.attaching import attach_settings
from dap_mux.session.following import Following
from dap_mux.session.running import Job, job_name
from dap_mux.session.serving import Session, serving, settings_of
from dap_mux.session.voices import set_up_log
from dap_mux.shell.listeners import serve_stdio


async def serve_adapter(options: AdapterOptions) -> int:
    """Serve the editor at the other end of standard input until it, or the job, is gone."""
    config = options.config
    set_up_log(config.verbosity, config.log_dir)
    settings = settings_of(config, ranks_from_client=True)
    avoid = range(config.base_port, config.base_port + 1024)
    async with (
        serving(config, settings, avoid=avoid) as session,
        anyio.create_task_group() as tasks,
    ):
        finder = Finder(session, config, tasks)
        session.driver.find_ranks = finder.find
        editor_gone = await serve_stdio(session.driver)
        await _all_left(session, editor_gone)
        await finder.finish()
        tasks.cancel_scope.cancel()
    return 0


async def _all_left(session: Session, editor_gone: asyncio.Event) -> None:
    """Wait until the editor and whoever joined have left, or for a signal.

    Editors send SIGTERM as soon as `disconnect` is answered, and when their window is reloaded.
    """
    async with anyio.create_task_group() as waiting:

        async def left() -> None:
            await editor_gone.wait()
            await session.driver.no_clients()
            waiting.cancel_scope.cancel()

        waiting.start_soon(left)
        await session.interrupted()
        waiting.cancel_scope.cancel()


class Finder:
    """Turns the words of an `attach` or `launch` request into ranks."""

    def __init__(self, session: Session, config: Config, tasks: TaskGroup) -> None:
        self._session = session
        self._config = config
        self._tasks = tasks
        self._cluster: LocalCluster | None = None
        self._job: Job | None = None
        self._job_over = anyio.Event()

    def find(self, request: FindRanks) -> None:
        """Answer the engine's question who the ranks are; the answer may take a while."""
        self._tasks.start_soon(self._find, request)

    async def _find(self, request: FindRanks) -> None:
        try:
            refuse_what_is_not_there(request.arguments)
            config = self._config.with_launch(request.arguments, Path.cwd())
            if request.command == "launch":
                await self._launch(request, config)
            else:
                await self._attach(request, config)
        except (DapMuxError, OSError) as error:
            self._session.driver.feed(inputs.RanksFound(request.number, str(error)))

    async def _attach(self, request: FindRanks, config: Config) -> None:
        following = await Following.of(endpoint_words(request.arguments))
        settings = replace(attach_settings(config, following), ranks_from_client=True)
        following.introduce(self._session)
        self._tasks.start_soon(following.run, self._session)
        self._session.driver.feed(inputs.RanksFound(request.number, settings=settings))

    async def _launch(self, request: FindRanks, config: Config) -> None:
        job = launch_job(config, request.arguments)
        settings = replace(settings_of(config, owns_job=True), job_name=job_name(job.command))
        async with LocalCluster(job) as cluster:
            self._cluster = cluster
            self._job = Job(self._session, cluster, terminal=False)
            self._job.introduce()
            self._session.driver.feed(inputs.RanksFound(request.number, settings=settings))
            await self._job.run()
        self._job_over.set()

    async def finish(self) -> None:
        """Nobody is left. A job that a client has asked to end is ended; any other runs on."""
        if self._job and self._job.ending:
            await self._job_over.wait()
            return
        await self._session.release("the editor has left")
        if self._cluster:
            self._cluster.leave_running()


# Attributes that have a meaning already, and nothing behind them yet.
NOT_YET = {
    "cluster": "name the ranks by `endpoints`, for example ['node1:5678+4']",
    "tunnel": "forward the ports yourself (ssh -L, kubectl port-forward)",
    "launcher": "start the job in a terminal, and attach to its ranks by `endpoints`",
}


def refuse_what_is_not_there(arguments: dict[str, Any]) -> None:
    """Raise UsageError where a configuration asks for what only a later release can do."""
    for name, instead in NOT_YET.items():
        if arguments.get(name):
            raise UsageError(f"`{name}` comes with a later release; for now {instead}")


def endpoint_words(arguments: dict[str, Any]) -> list[str]:
    """Return the endpoints that an `attach` request names; raise UsageError where it names none.

    `endpoints` is a list of endpoint words; `connect` (or `host` and `port`) is where rank 0
    listens, and `ranks` says how many there are from that port on.
    """
    words = arguments.get("endpoints")
    if words:
        return [words] if isinstance(words, str) else [str(word) for word in words]
    connect = arguments.get("connect") or arguments
    port = connect.get("port") if isinstance(connect, dict) else None
    if not isinstance(port, int):
        raise UsageError(
            "attach needs `endpoints` (for example ['localhost:5678-5681']), or `connect` with "
            "the port of rank 0 and `ranks` with their number"
        )
    count = arguments.get("ranks", 1)
    if not isinstance(count, int) or count < 1:
        raise UsageError(f"`ranks` is the number of ranks, not {count!r}")
    return [f"{connect.get('host') or 'localhost'}:{port}+{count}"]


def launch_job(config: Config, arguments: dict[str, Any]) -> LocalJob:
    """Return the job that a `launch` request describes; raise UsageError where it is wrong."""
    cwd = Path(str(arguments.get("cwd") or Path.cwd()))
    environment = arguments.get("env") or {}
    count = arguments.get("nproc", 1)
    if not isinstance(count, int) or count < 1:
        raise UsageError(f"`nproc` is the number of ranks, not {count!r}")
    return LocalJob(
        command=(*_target(arguments, cwd), *map(str, arguments.get("args") or ())),
        world_size=count,
        base_port=config.base_port,
        wait=config.wait,
        stop_on_entry=arguments.get("stopOnEntry") is True,
        log_dir=config.log_dir or Path(tempfile.mkdtemp(prefix="dap-mux-logs-")),
        python=str(arguments.get("python") or sys.executable),
        env={str(key): str(value) for key, value in environment.items()},
        cwd=cwd,
    )


def _target(arguments: dict[str, Any], cwd: Path) -> tuple[str, ...]:
    if not cwd.is_dir():
        raise UsageError(f"there is no folder {cwd}")
    module, program = arguments.get("module"), arguments.get("program")
    if module:
        return ("-m", str(module))
    if not program:
        raise UsageError("launch needs `program` (a script) or `module`")
    path = os.path.join(cwd, str(program))  # noqa: PTH118  (an absolute program wins)
    if not os.path.isfile(path):  # noqa: PTH113
        raise UsageError(f"there is no file {program}")
    return (path,)
