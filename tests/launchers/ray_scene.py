"""Real clusters of Ray, and jobs that others have started in them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.launchers.launching import STARTS
from tests.launchers.tools import environment
from tests.support.processes.commands import Command, User
from tests.support.processes.waiting import until

SERVICE: Final = Path(__file__).with_name("scripts") / "ray_service.py"
ENVIRON: Final = {"RAY_raylet_start_wait_time_s": "120"}  # 30 s is too little on a busy machine


@contextmanager
def ray_cluster() -> Iterator[dict[str, str]]:
    """Variables of a cluster; the path of its sockets may have 107 characters only."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield {"RAY_TMPDIR": folder, **ENVIRON}


@pytest.fixture
def cluster() -> Iterator[dict[str, str]]:
    with ray_cluster() as variables:
        yield variables


@dataclass(frozen=True)
class Service:
    """A job of Ray that runs on its own; `ends` returns what it has printed."""

    user: User
    process: asyncio.subprocess.Process
    environ: Mapping[str, str]

    @classmethod
    async def start(cls, user: User, environ: Mapping[str, str], *words: str) -> Service:
        """Start it, and wait for its cluster and its actors."""
        python = str(environment("ray") / "python")
        process = await asyncio.create_subprocess_exec(
            python, str(SERVICE), *words,
            cwd=user.folder, env={**user.environ, **environ}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        user.others.append(process)
        await until((user.folder / "address").exists, within=STARTS, what="a cluster")
        return cls(user, process, environ)

    @property
    def address(self) -> str:
        """`HOST:PORT` of its cluster."""
        return (self.user.folder / "address").read_text("utf-8")

    async def attach(self, words: list[str], **environ: str) -> Command:
        """Attach to its cluster, with Ray's Python first in PATH."""
        path = f"{environment('ray')}{os.pathsep}{self.user.environ['PATH']}"
        return await self.user.start(*words, env={**self.environ, "PATH": path, **environ})

    async def ends(self) -> str:
        """Let it come to its end."""
        (self.user.folder / "enough").touch()
        output, _ = await asyncio.wait_for(self.process.communicate(), STARTS)
        assert self.process.returncode == 0
        return output.decode()
