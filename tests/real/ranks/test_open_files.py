"""A session opens as many files as it may, and says what does not fit; ranks keep their limit."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Sequence

import pytest

from tests.support.processes.commands import COMMAND, LIMIT, User
from tests.support.processes.run_command import run_words
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real
TELL_LIMIT = """\
import os
import resource
from pathlib import Path

lines = Path(f"/proc/{os.getppid()}/limits").read_text().splitlines()
(session,) = (line.split()[3] for line in lines if "open files" in line)
print("limits", *resource.getrlimit(resource.RLIMIT_NOFILE), session)
"""


async def limited(user: User, limit: str, *words: str) -> asyncio.subprocess.Process:
    """Start a command under another limit of open files; its errors go to its output."""
    shell = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh"]
    process = await asyncio.create_subprocess_exec(
        *shell,
        str(COMMAND),
        *words,
        cwd=user.folder,
        env=user.environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    user.others.append(process)
    return process


def launched(words: Sequence[str]) -> list[str]:
    """The same job, by a launcher of one rank."""
    return ["run", "--no-wait", "--", "env", "RANK=0", "WORLD_SIZE=1", "python", words[-1]]


@pytest.mark.parametrize("by_launcher", [False, True], ids=["our own ranks", "a launcher's"])
async def test_the_session_takes_all_and_a_rank_keeps_its_own(
    user: User, *, by_launcher: bool
) -> None:
    words = run_words("--no-wait", user.script(TELL_LIMIT), n=1)
    process = await limited(user, "-S -n 500", *(launched(words) if by_launcher else words))
    out, _ = await asyncio.wait_for(process.communicate(), LIMIT)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert process.returncode == 0, out
    assert f"limits 500 {hard} {hard}" in out.decode()


async def test_what_does_not_fit_is_said_before_the_first_rank(user: User) -> None:
    ports = "127.0.0.1:20000-20499"
    process = await limited(user, "-n 300", "attach", ports, "--listen", "127.0.0.1:0")
    assert process.stdout is not None
    said = await asyncio.wait_for(process.stdout.readuntil(b"start the session again\n"), LIMIT)
    assert b"500 ranks need about 564 open files, and this session may open 300" in said
    assert b"ulimit -n 564" in said
    await until(lambda: list(user.sessions.glob("*.json")), within=LIMIT, what="it serves")
    process.terminate()
    await process.communicate()
