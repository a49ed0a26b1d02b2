"""`dap-mux adapter`: DAP on standard input and output, as editors start a debug adapter.

The editor's `attach` request says where ranks listen, `launch` what to start. Other clients can
join through the port, as in any session.

An editor waits for its adapter to start, so what finds and starts ranks is imported when a request
asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dap_mux.engine import Settings, inputs
from dap_mux.engine.outputs import FindRanks
from dap_mux.pure.errors import DapMuxError
from dap_mux.session.session import Session, open_session, settings_of
from dap_mux.session.terminal_output import set_up_log
from dap_mux.shell.listeners import StdioConnection, serve_stdio
from dap_mux.system.config import Config

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from dap_mux.session.hosted_ranks import Recorded
    from dap_mux.session.launcher_job import LauncherRanks
    from dap_mux.session.local_job import LocalRanks


async def serve_adapter(config: Config, opens: Callable[[Path], Recorded]) -> int:
    """Serve the editor on standard input and output until it has left or the job has ended.

    `opens` reads a report, which a `launch` may name. Raises DapMuxError if the input is not DAP.
    """
    set_up_log(config.verbosity, config.log_dir, config.log)
    settings = settings_of(config, ranks_from_client=True)
    avoid = range(config.base_port, config.base_port + 1024)
    async with open_session(config, settings, avoid=avoid) as session:
        finder = Finder(session, config, opens)
        editor = await serve_stdio(session.driver)
        await first(finder.run(), _serve(session, finder, editor))
    if editor.fault:
        raise DapMuxError(f"closed standard input, where DAP was expected: {editor.fault}")
    return 0


async def _serve(session: Session, finder: Finder, editor: StdioConnection) -> None:
    """Serve until all clients have left, or a signal comes.

    Editors send SIGTERM as soon as `disconnect` is answered, and when their window is reloaded.
    """

    async def left() -> None:
        await editor.closed.wait()
        await session.driver.no_clients()

    await first(left(), session.interrupted())
    await finder.finish()


class Finder:
    """Finds or starts the ranks of an `attach` or `launch` request."""

    _tasks: TaskGroup

    def __init__(self, session: Session, config: Config, opens: Callable[[Path], Recorded]) -> None:
        self._session = session
        self._opens = opens
        self._config = config
        self._job: LocalRanks | LauncherRanks | None = None
        self._job_over = asyncio.Event()
        self._found: set[int] = set()

    async def run(self) -> None:
        """Answer the engine's `FindRanks` side by side: each may take a while."""
        request = await self._session.driver.rank_searches.get()
        import anyio  # it takes longer to import than the engine

        async with anyio.create_task_group() as self._tasks:
            while True:
                self._tasks.start_soon(self._find, request)
                request = await self._session.driver.rank_searches.get()

    async def _find(self, request: FindRanks) -> None:
        try:
            config = self._config.with_launch(request.arguments, Path.cwd())
            if request.command == "launch" and request.arguments.get("report"):
                self._show(request, config)
            elif request.command == "launch":
                await self._launch(request, config)
            else:
                await self._attach(request, config)
        except (DapMuxError, OSError) as error:
            self._answer(request, str(error))
        except Exception as error:
            if request.number in self._found:
                raise
            self._answer(request, error)

    def _answer(
        self, request: FindRanks, problem: str | Exception = "", settings: Settings | None = None
    ) -> None:
        self._found.add(request.number)
        self._session.driver.feed(inputs.RanksFound(request.number, problem, settings))

    async def _attach(self, request: FindRanks, config: Config) -> None:
        from dap_mux.session.attach import attach_settings
        from dap_mux.session.attach_attributes import attach_endpoints
        from dap_mux.session.rank_sources import RankSources

        sources = await RankSources.of(attach_endpoints(request.arguments), config.python)
        settings = replace(attach_settings(config, sources), ranks_from_client=True)
        sources.announce_ranks(self._session)
        self._tasks.start_soon(sources.run, self._session)
        self._answer(request, settings=settings)

    def _show(self, request: FindRanks, config: Config) -> None:
        from dap_mux.session.hosted_ranks import recorded_settings, show

        recording = self._opens(Path(str(request.arguments["report"])))
        show(self._session, recording)
        self._answer(request, settings=recorded_settings(config))

    async def _launch(self, request: FindRanks, config: Config) -> None:
        from dap_mux.system.temporary_folders import log_folder

        with log_folder(config.log_dir) as log_dir:
            config = replace(config, log_dir=log_dir)
            if request.arguments.get("launcher"):
                await self._launch_by_launcher(request, config)
            else:
                await self._launch_ranks(request, config)
        self._job_over.set()

    async def _launch_ranks(self, request: FindRanks, config: Config) -> None:
        from dap_mux.cluster.local import LocalCluster
        from dap_mux.session.launch_attributes import launch_job
        from dap_mux.session.local_job import LocalRanks, job_name

        job = launch_job(config, request.arguments)
        settings = replace(settings_of(config, owns_job=True), job_name=job_name(job.command))
        settings = replace(settings, replays=bool(request.arguments.get("replay")))
        async with LocalCluster(job) as cluster:
            self._job = ranks = LocalRanks(self._session, cluster, terminal=False)
            ranks.announce_ranks()
            self._answer(request, settings=settings)
            await ranks.run()

    async def _launch_by_launcher(self, request: FindRanks, config: Config) -> None:
        from dap_mux.cluster.launcher import LaunchedJob
        from dap_mux.session.launch_attributes import launcher_job
        from dap_mux.session.launcher_job import LauncherRanks, launcher_settings

        job = launcher_job(config, request.arguments)
        settings = launcher_settings(config, job.command)
        async with LaunchedJob(job) as launched:
            self._job = LauncherRanks(self._session, launched, terminal=False)
            self._answer(request, settings=settings)
            await self._job.run()

    async def finish(self) -> None:
        """All clients have left: wait for a job that is ending, and let any other continue.

        A job whose ranks still wait for their first debugger is ended: it could never start.
        """
        if self._job and not self._session.driver.engine.began:
            self._session.driver.end_requested.set()
        if self._job and self._job.ending:
            await self._job_over.wait()
            return
        await self._session.release("the editor has left")
        if self._job:
            self._job.started.leave_running()


async def first(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Run all until the first is done, and cancel the others. Raises what one of them raises."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
