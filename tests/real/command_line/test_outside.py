"""`stacks pid:` and `why pid:` of plain Python processes, with py-spy and where there is none."""

from __future__ import annotations

import asyncio
import json
import os
import site
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from dap_mux.cli.outside import NO_PY_SPY
from tests.support.processes.commands import LIMIT, User, user

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
ROOT: Final = Path(__file__).resolve().parents[3]
PROGRAM: Final = """\
import sys, threading

def wait(what):
    print("waits", flush=True)
    what.wait()

def load(shard):
    wait(threading.Event())

threading.Thread(target=wait, args=(threading.Event(),), name="loader-7", daemon=True).start()
load(41)
"""


def python_without_py_spy(folder: Path) -> tuple[Path, dict[str, str]]:
    """The same Python and packages, with nothing beside it or in PATH."""
    folder.mkdir()
    python = folder / "python3"
    python.symlink_to(os.path.realpath(sys.executable))
    paths = os.pathsep.join([*site.getsitepackages(), str(ROOT)])
    return python, {"PATH": str(folder), "PYTHONPATH": paths}


@asynccontextmanager
async def waiting(
    user: User, python: Path, program: str = PROGRAM, **env: str
) -> AsyncIterator[int]:
    """A process of two threads that wait; its pid."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        user.script(program),
        env={**user.environ, **env},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    for _ in range(2):
        assert await asyncio.wait_for(process.stdout.readline(), LIMIT) == b"waits\n"
    try:
        yield process.pid
    finally:
        process.kill()
        await process.wait()


async def test_the_stacks_of_a_process(user: User) -> None:
    async with waiting(user, Path(sys.executable)) as pid:
        done = await user.does("stacks", f"pid:{pid}", "--threads", "all", "--json")
        assert done.code == 0, done.err
        body = json.loads(done.out)
        shown = await user.does("stacks", f"pid:{pid}")
    assert (body["source"], body["missing"]) == ("py-spy", [])
    assert [thread["name"] for thread in body["threads"]] == ["MainThread", "loader-#"]
    (branch,) = body["threads"][0]["branches"]
    own = [frame["name"] for frame in branch["frames"] if not frame["library"]]
    assert own == ["<module>", "load", "wait"]
    assert "load  train.py:8" in shown.out


async def test_without_py_spy(user: User, tmp_path: Path) -> None:
    python, env = python_without_py_spy(tmp_path / "bare")
    async with waiting(user, python, PATH=env["PATH"]) as pid:
        for command, code, told in (
            ("stacks", 1, f"{NO_PY_SPY}, so the stacks"),
            ("why", 1, f"try: pip install py-spy; or dap-mux why pid:{pid} --attach"),
        ):
            asked = await asyncio.create_subprocess_exec(
                str(python),
                *("-m", "dap_mux", command, f"pid:{pid}"),
                env={**user.environ, **env},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            said, _ = await asyncio.wait_for(asked.communicate(), LIMIT)
            assert (asked.returncode, told in said.decode()) == (code, True), said.decode()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("stacks", "ssh:node1"), "name a session, or processes"),
        (("stacks", "pid:1", "0-3"), "name either a session or endpoints"),
        (("stacks", "pid:x"), "not a list of process ids"),
        (("why", "pid:999999999"), "no process 999999999"),
    ],
)
async def test_mistakes(user: User, words: tuple[str, ...], told: str) -> None:
    done = await user.does(*words)
    assert done.code in {1, 2, 3}
    assert told in done.err


async def test_code_that_is_named_after_a_file_which_never_ends(user: User, tmp_path: Path) -> None:
    """Its source is looked for, and none is waited for."""
    endless = tmp_path / "endless.py"
    os.mkfifo(endless)
    program = f"exec(compile({PROGRAM!r}, {str(endless)!r}, 'exec'))"
    async with waiting(user, Path(sys.executable), program) as pid:
        done = await user.does("why", f"pid:{pid}")
    assert "rank 0" in done.out, done.err
