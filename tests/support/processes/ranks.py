"""Real debugpy ranks for tests, started without our own launcher.

A rank counts as ready when its `debugpy.listen` has returned, which its sockets show: the
adapter listens on the rank's port, and the rank is connected to the adapter. A bare
connection to find out would wedge the adapter, and one that comes too early can kill the rank.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from dap_mux.system import procfs
from tests.support.processes import proc_net
from tests.support.processes.rank_forks import Forked, can_fork, fork
from tests.support.processes.waiting import until

HOST: Final = "127.0.0.1"
_START: Final = 60.0  # seconds: 32 ranks at once on two busy cores
_END: Final = 30.0
Style = Literal["module", "script", "agent"]
"""`python -m debugpy --listen` around the script, a script that calls `debugpy.listen` itself, on
the port in `DEBUGPY_PORT`, or our agent around the script, which listens without an adapter."""


@dataclass
class Rank:
    """One rank's process; `adapter` is the pid of its debugpy adapter, once it is ready."""

    rank: int
    port: int
    process: asyncio.subprocess.Process | Forked
    log: Path
    adapter: int = 0

    @property
    def pid(self) -> int:
        """The pid of the rank itself."""
        return self.process.pid

    @property
    def output(self) -> str:
        """What the rank has written so far, both streams."""
        return self.log.read_text("utf-8", errors="replace")

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self.process.returncode is None

    async def ended(self, *, within: float = _END) -> int:
        """Wait for its end; return the exit code, -n for signal n."""
        try:
            return await asyncio.wait_for(self.process.wait(), within)
        except asyncio.TimeoutError:
            raise AssertionError(
                f"rank {self.rank}, process {self.pid} on port {self.port}, has not ended within "
                f"{within:g} s:\n{await self._stacks()}\n{self.output[-2000:]}"
            ) from None

    async def _stacks(self) -> str:
        """What each thread is at, as py-spy sees it."""
        words = (str(Path(sys.executable).with_name("py-spy")), "dump", "--pid", str(self.pid))
        pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=both)
        return (await process.communicate())[0].decode("utf-8", "replace")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the rank alone."""
        self.process.send_signal(number)

    def is_ready(self) -> bool:
        """True once `debugpy.listen` has returned in it; raises when it has died instead."""
        assert self.running, f"rank {self.rank} ended with {self.process.returncode}: {self.output}"
        if not proc_net.listens(self.port):
            return False
        self.adapter = proc_net.listener(self.port) or 0
        in_process = self.adapter == self.pid
        return in_process or (bool(self.adapter) and proc_net.connected(self.pid, self.adapter))


@asynccontextmanager
async def debugpy_ranks(  # noqa: PLR0913 - each is one plain thing to say of them
    n: int,
    script: Path | str,
    *,
    base_port: int | None = None,
    wait: bool = True,
    env: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    options: Sequence[str] = (),
    style: Style = "module",
    folder: Path | None = None,
    python: Path | str = sys.executable,
    forked: bool = True,
) -> AsyncIterator[list[Rank]]:
    """Run `n` ranks of `script`, all started at the same moment; yield them when all are ready.

    `wait` holds them at their start until a client has configured them (not style `script`), and
    `DEBUGPY_HOST` in `env` is another loopback address to listen on (style `module`). They run in
    `folder`, by default where the tests do, under `python`. `options`: more of debugpy's own (style
    `module`) or of our agent's. Ranks of style `module` are forked from one process that has
    imported debugpy (rank_forks.py); not `forked` is for a test of a rank's command line.
    At the end every process is gone, adapters and grandchildren too.
    """
    first = proc_net.free_ports(n) if base_port is None else base_port
    async with AsyncExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ranks-")))
        ranks: list[Rank] = []
        stack.push_async_callback(_end_all, ranks)
        for rank in range(n):
            variables = {**_variables(rank, n, first + rank), **(env or {})}
            command = _command([str(python)], variables, script, style, options, wait=wait)
            log = logs / f"rank-{rank}.log"
            words = [*command, *arguments]
            if forked and style == "module" and can_fork([str(python)], variables):
                argv = words[words.index("debugpy") + 1 :]
                process: asyncio.subprocess.Process | Forked = fork(argv, variables, log, folder)
            else:
                process = await _start(words, variables, log, folder)
            ranks.append(Rank(rank, first + rank, process, log))
        for one in ranks:
            await until(one.is_ready, within=_START, what=f"rank {one.rank} ready")
        yield ranks


def _command(
    python: list[str],
    variables: Mapping[str, str],
    script: Path | str,
    style: Style,
    options: Sequence[str],
    *,
    wait: bool,
) -> list[str]:
    if style == "script":
        return [*python, str(script)]
    if style == "agent":
        hold = [*options, "--wait" if wait else "--no-wait"]
        port = variables["DEBUGPY_PORT"]
        return [*python, "-m", "dap_mux.rank", *hold, "--port", port, str(script)]
    hold = [*options, *(["--wait-for-client"] if wait else [])]
    address = f"{variables.get('DEBUGPY_HOST', HOST)}:{variables['DEBUGPY_PORT']}"
    return [*python, "-m", "debugpy", "--listen", address, *hold, str(script)]


def _variables(rank: int, world: int, port: int) -> dict[str, str]:
    return {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "DEBUGPY_PORT": str(port),
        "DEBUGPY_PROCESS_SPAWN_TIMEOUT": str(int(_START)),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONUNBUFFERED": "1",
    }


async def _start(
    command: Sequence[str], variables: Mapping[str, str], log: Path, folder: Path | None
) -> asyncio.subprocess.Process:
    with log.open("wb") as out:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(variables),
            cwd=folder,
            start_new_session=True,  # so that its own children end with it
        )


async def _end_all(ranks: Sequence[Rank]) -> None:
    for rank in ranks:
        with suppress(ProcessLookupError):
            os.killpg(rank.pid, signal.SIGKILL)
    for rank in ranks:
        await rank.ended()
        await _end_adapter(rank)


async def _end_adapter(rank: Rank) -> None:
    """An adapter outlives its rank while it is wedged, or while a client of the test is there."""
    pid = rank.adapter or proc_net.listener(rank.port) or 0
    if pid and _is_adapter(pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _is_adapter(pid: int) -> bool:
    """True while `pid` is a debugpy adapter, and not a stranger who got the same pid."""
    return "debugpy" in " ".join(procfs.command_line(pid) or ())
