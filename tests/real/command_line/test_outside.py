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

from dap_mux.frontends.cli.outside import NO_PY_SPY
from tests.support.processes.commands import LIMIT, User

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


USES_NCCL: Final = """\
import mmap, time
with open("libnccl.so.2", "rb") as library:
    mapped = mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ)
print("waits", flush=True)
time.sleep(1e6)
"""
RAS: Final = """\
#!/bin/sh
printf '%s ' "$@" >asked
echo '{"communicators": [{"size": 2, "ranks": [
  {"rank": 0, "host": "10.0.0.1", "pid": PID, "collective_counts": {"AllReduce": 40}}
  {"rank": 1, "host": "10.0.0.2", "pid": 7, "collective_counts": {"AllReduce": 41}}]}]}'
"""


async def test_nccl_is_asked_what_each_rank_has_launched(user: User, tmp_path: Path) -> None:
    (user.folder / "libnccl.so.2").write_bytes(b"x" * 4096)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        user.script(USES_NCCL),
        env={**user.environ, "RANK": "5", "NCCL_RAS_ADDR": "node1:28029"},
        cwd=user.folder,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    assert await asyncio.wait_for(process.stdout.readline(), LIMIT) == b"waits\n"
    program = tmp_path / "ncclras"
    program.write_text(RAS.replace("PID", str(process.pid)), "utf-8")
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{user.environ['PATH']}"
    done = await user.does("why", f"pid:{process.pid}", "--json", env={"PATH": path})
    process.kill()
    await process.wait()
    line = "NCCL: rank 5 of a communicator of 2: 40 AllReduce launched, others 41"
    assert json.loads(done.out)["evidence"][-1] == line
    assert (user.folder / "asked").read_text("utf-8") == "-f json -t 3 -h node1 -p 28029 "


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


async def test_code_that_is_named_after_a_file_which_never_ends(user: User, tmp_path: Path) -> None:
    """Its source is looked for, and none is waited for."""
    endless = tmp_path / "endless.py"
    os.mkfifo(endless)
    program = f"exec(compile({PROGRAM!r}, {str(endless)!r}, 'exec'))"
    async with waiting(user, Path(sys.executable), program) as pid:
        done = await user.does("why", f"pid:{pid}")
    assert "rank 0" in done.out, done.err
