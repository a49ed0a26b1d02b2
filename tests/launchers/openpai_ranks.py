"""What runs in the tasks of an OpenPAI job, with the variables that OpenPAI sets there."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.real.command_line.test_docs_ranks import JOB, platform
from tests.real.driving import COUNTING
from tests.support.hosts.private_network import logged
from tests.support.openpai_server import Task
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until

ROOT: Final = Path(__file__).resolve().parents[2]
LOG_SAYS: Final = "listens for a debugger"


@dataclass
class Ranks:
    """What runs in the tasks of the job, with what OpenPAI sets there."""

    user: User
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)

    async def start(
        self, command: str, environ: Mapping[str, str], network: Sequence[str] = ()
    ) -> int:
        """Run a command of the job in a task; return its place among these."""
        log = self.user.folder.parent / f"task-{len(self.logs)}.log"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {**self.user.environ, **environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        words = [*network, "sh", "-ec", command]
        process = await logged(log, *words, cwd=self.user.folder, env=own, start_new_session=True)
        self.processes.append(process)
        self.logs.append(log)
        return len(self.logs) - 1

    async def counts(self, environ: Mapping[str, str], *words: str) -> int:
        """A rank that counts until a file is there."""
        agent = f"exec python -m dap_mux.rank {shlex.join(words)} {COUNTING} {self.done}"
        return await self.start(agent, {"DEBUG_PORT_NAME": "debug", **environ})

    @property
    def done(self) -> Path:
        return self.user.folder / "done"

    def output(self) -> str:
        return "".join(log.read_text("utf-8") for log in self.logs)

    async def listen(self, count: int) -> None:
        said = lambda: self.output().count(LOG_SAYS) == count  # noqa: E731
        await until(said, within=LIMIT, what=f"{count} ranks listen: {self.output()}")

    async def ends(self, place: int) -> int:
        return await asyncio.wait_for(self.processes[place].wait(), LIMIT)

    async def close(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def job_command() -> str:
    """The shell commands of the example's job."""
    (block,) = re.findall(r"^    commands:\n((?: {6}- .*\n)+)", JOB, re.MULTILINE)
    return "\n".join(line.removeprefix("      - ") for line in block.splitlines())


def tasks(base: int, count: int, **ports: int) -> list[Task]:
    """Tasks that run, whose debug ports follow one another."""
    made = [Task(index, {**ports, "debug": base + index}) for index in range(count)]
    for task in made:
        task.runs()
    return made


def in_task(index: int, base: int, **more: str) -> dict[str, str]:
    """What OpenPAI sets in one task of four of the role train."""
    return {**platform(index, base), "RANK": str(index), "WORLD_SIZE": "4", **more}
