"""One run: start a job, wait until its fault has taken effect, and ask a session why."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from dap_mux.client import DapClient
from dap_mux.system import procfs
from tests.support.processes import proc_net
from tests.support.processes.commands import Command, User, threads
from tests.support.processes.waiting import until
from tests.why_score import memory_limit
from tests.why_score.jobs.blocking import FAULTS
from tests.why_score.kinds import is_healthy
from tests.why_score.ranks import Job, Parents, Started, started
from tests.why_score.results import Plan, Result, judged, skipped

UNDER_WAY_S: Final = 60.0
SETTLED_S: Final = 0.5  # nobody has gone on for so long
ATTACHED_S: Final = 5.0  # a rank that holds the GIL never is
LOOK_S: Final = 0.05
WORKERS: Final = "WHY_WORKERS"


class Answer(NamedTuple):
    """What a command of ours has printed about the job; or its error, as the `sentence`."""

    body: dict[str, Any]
    code: int
    seconds: float


async def run(plan: Plan, job: Job, parents: Parents) -> Result:
    """Carry out a plan."""
    if plan.fault == "out-of-memory" and (why := memory_limit.missing()):
        return skipped(plan, why)
    if not job.python.exists():
        return skipped(plan, f"{job.name} is not here: see tests/launchers/install")
    try:
        (answer,) = await ask(plan, job, parents, "why")
    except NoSuchState as error:
        return skipped(plan, f"no such state: {error}")
    return judged(plan, *answer)


class NoSuchState(Exception):
    """The job has not come into the state that is to be asked about."""


async def ask(plan: Plan, job: Job, parents: Parents, *commands: str) -> list[Answer]:
    """Bring a job into the state of a plan; return what commands about its session say.

    Raises `NoSuchState`.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="why-")))
        if job.mpirun:
            await stack.enter_async_context(parents.mpi)
        try:
            scene = await _Scene.start(plan, job, None if plan.alone else parents, folder, stack)
            await scene.come_about()
        except (AssertionError, TimeoutError, asyncio.TimeoutError) as error:
            raise NoSuchState(str(error)) from error
        return [await scene.ask(command) for command in commands]


class _Scene:
    """A job, and somebody who has a session with it."""

    def __init__(
        self, plan: Plan, job: Job, run: Started, user: User, stack: AsyncExitStack
    ) -> None:
        self._plan = plan
        self._job = job
        self._run = run
        self._user = user
        self._stack = stack
        self._session: Command | None = None
        self._client: DapClient | None = None

    @classmethod
    async def start(
        cls, plan: Plan, job: Job, parents: Parents | None, folder: Path, stack: AsyncExitStack
    ) -> _Scene:
        place = folder / "job"
        place.mkdir()
        user = User(folder)
        stack.push_async_callback(user.close)
        if plan.fault == "file-lock":
            lock = stack.enter_context((place / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        environ = {
            "WHY_FAULT": plan.fault,
            "WHY_RANK": str(plan.rank),
            "WHY_STEP": str(plan.step),
            WORKERS: str(int(_loads(plan.fault))),
        }
        ports = proc_net.free_ports(2 * plan.size + 1)
        run = await stack.enter_async_context(
            started(job, place, ports, plan.size, environ, parents)
        )
        return cls(plan, job, run, user, stack)

    async def come_about(self) -> None:
        """Wait until the job is in the state that is asked about, with a session over it."""
        await until(self._listening, within=UNDER_WAY_S, what="all ranks listen")
        if not self._plan.late:
            await self._attach()
        (self._run.folder / "go").touch()
        await until((self._run.folder / "mark").exists, within=UNDER_WAY_S, what="the mark")
        await self._from_outside()
        if is_healthy(self._plan.fault):
            await self._moves()
        else:
            await self._settles()
        if self._plan.fault == "exit-hook":
            await until(self._others_ended, within=UNDER_WAY_S, what="the others have ended")
        if self._client is None:
            await self._attach()

    async def ask(self, command: str) -> Answer:
        """Run a command of ours about the session."""
        assert self._session is not None
        began = time.monotonic()
        try:
            session = await self._session.session()
            where = f"{session['host']}:{session['port']}"
            done = await self._user.does(command, where, "--json")
        except AssertionError as error:  # the session has ended already, or the command does not
            return Answer({"sentence": str(error).strip()}, -1, time.monotonic() - began)
        seconds = time.monotonic() - began
        known = done.out.startswith("{")
        body = json.loads(done.out) if known else {"sentence": done.err.strip()}
        return Answer(body, done.code, seconds)

    async def _attach(self) -> None:
        endpoint = f"127.0.0.1:{self._run.port}+{self._plan.size}"
        self._session = await self._user.start("attach", endpoint, "--scope", "rank")
        self._client = await self._session.client(all_answered=False)
        points: dict[str, Any] = {}
        if self._plan.fault == "breakpoint":
            line = _line_of(self._job.script, "shares.progress(step)")
            condition = f"ranks({self._plan.rank}): step > {self._plan.step}"
            points[self._job.script] = [{"line": line, "condition": condition}]
        await self._client.handshake({"justMyCode": False}, breakpoints=points)
        for _ in range(int(ATTACHED_S / LOOK_S)):
            ranks = (await self._client.request("list"))["ranks"]
            if not any(rank["state"] in ("waiting", "connecting") for rank in ranks):
                break
            await asyncio.sleep(LOOK_S)

    def _listening(self) -> bool:
        ports = range(self._run.port, self._run.port + self._plan.size)
        return all(proc_net.listens(port) for port in ports)

    def _others_ended(self) -> bool:
        own = self._run.pids[self._plan.rank]
        return not any(procfs.runs(pid) for pid in self._run.pids if pid != own)

    def _steps(self) -> list[str]:
        return [file.read_text("ascii") for file in sorted(self._run.folder.glob("progress-*"))]

    async def _moves(self) -> None:
        """Wait until every rank has taken a step."""
        before = self._steps()
        await until(
            lambda: all(new != old for old, new in zip(before, self._steps(), strict=True)),
            within=UNDER_WAY_S,
            what="the job goes on",
        )

    async def _settles(self) -> None:
        """Wait until nobody goes on."""
        seen, since = self._steps(), time.monotonic()
        deadline = since + UNDER_WAY_S
        while time.monotonic() - since < SETTLED_S:
            await asyncio.sleep(LOOK_S)
            assert time.monotonic() < deadline, f"the job goes on with {self._plan.name}: {seen}"
            if (now := self._steps()) != seen:
                seen, since = now, time.monotonic()

    async def _from_outside(self) -> None:
        """Do to the rank what it cannot do itself."""
        actions: dict[str, Callable[[], Any]] = {
            "killed": lambda: os.kill(self._pid(), signal.SIGKILL),
            "stopped-process": lambda: os.kill(self._pid(), signal.SIGSTOP),
            "out-of-memory": lambda: memory_limit.run_out(self._pid(), self._stack),
        }
        if self._plan.fault in actions:
            actions[self._plan.fault]()
        elif self._plan.fault in ("paused", "breakpoint"):
            await self._stop()

    def _pid(self) -> int:
        pid = proc_net.listener(self._run.port + self._plan.rank)
        assert pid is not None, f"rank {self._plan.rank} is gone"
        return pid

    async def _stop(self) -> None:
        """Be a debugger that stops the rank, and stays."""
        if self._client is None:
            await self._attach()
        assert self._client is not None
        if self._plan.fault == "paused":
            rows = await threads(self._client, self._plan.size)
            (row,) = (row for name, row in rows.items() if _number(name) == self._plan.rank)
            await self._client.request("pause", {"threadId": row})
        await self._client.wait_event("stopped")


def _loads(fault: str) -> bool:
    """Whether the fault is one of the data loader."""
    return fault in FAULTS and FAULTS[fault].place == "load"


def _number(name: str) -> int:
    """Return the number of a rank, of its row's name."""
    return int(name.split()[1])


def _line_of(script: str, text: str) -> int:
    lines = Path(script).read_text("utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if text in line)
    return found
