"""What is wrong though every rank is attached: files, conditions, versions; with real debugpy."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import debugpy  # noqa: T100
import pytest

from dap_mux.client import DapClient
from tests.doctor.conftest import Doctor, Json, endpoint
from tests.real.driving import StartRanks, joined
from tests.support.processes.commands import LIMIT, Command, User, line_of, listed
from tests.support.processes.ranks import Rank

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]
ENCODER: Final = json.encoder.__file__
PROGRAM: Final = """\
import json
import sys
import time
from pathlib import Path

limit = 10**9


def step(number, *, scale=2):
    parts = [part for part in range(3)]
    total = number * scale
    return total  # here


number = 0
while not Path(sys.argv[1]).exists():
    number += 1
    step(number)
    json.dumps(number)
    time.sleep(0.01)
print("the end")
"""
GOOD: Final = (
    "number > limit and scale == 2 and any(one > limit for one in parts)",
    "ranks(0): $rank > 99 or (lambda x: x > limit)(total) or __name__ == 'no' or len(sys.argv) > 9",
)


@dataclass
class Job:
    """Two ranks of a program, and who debugs them; `path` is the program's as ranks know it."""

    path: str
    ranks: list[Rank]
    session: Command
    client: DapClient
    go: Path

    async def breakpoints(self, path: str, *wanted: Json) -> list[Json]:
        """Set them in a file, instead of those before."""
        arguments = {"source": {"path": path}, "breakpoints": list(wanted)}
        answer = await self.client.request("setBreakpoints", arguments, timeout=LIMIT)
        found: list[Json] = answer["breakpoints"]
        return found

    async def told(self, words: str) -> None:
        """Wait until the session says this of a breakpoint."""
        messages: list[str] = []
        for _ in range(600):
            answer = await self.client.request("breakpoints", timeout=LIMIT)
            messages = [one["message"] or "" for one in answer["breakpoints"]]
            if any(words in message for message in messages):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(messages)

    async def ends_well(self) -> None:
        """The doctor has harmed nobody: the ranks run to their end."""
        await listed(self.client, "state", "running", "running")
        self.go.touch()
        for rank in self.ranks:
            assert await rank.ended(within=LIMIT) == 0, rank.output
            assert "the end" in rank.output
        await self.session.ends()  # it knows of their end, and nobody looks at it any more


Debug = Callable[..., Any]


@pytest.fixture
def debugged(user: User, start_ranks: StartRanks) -> Debug:
    """`async with debugged(**attach_arguments) as job`: on two ranks, attached."""

    @asynccontextmanager
    async def debugging(env: dict[str, str] | None = None, **arguments: Any) -> AsyncIterator[Job]:
        there = user.folder / "there" / "proj"
        there.mkdir(parents=True)
        path = there / "train.py"
        path.write_text(PROGRAM, "utf-8")
        go = user.folder / "go"
        ranks = await start_ranks(2, path, wait=True, arguments=[str(go)], env=env)
        attach = await user.start("attach", *map(endpoint, ranks))
        shown = {"justMyCode": True, "cwd": str(user.folder), **arguments}
        client = await joined(attach, attach=shown)
        await listed(client, "state", "running", "running")
        yield Job(str(path), ranks, attach, client, go)

    return debugging


@pytest.mark.quick
async def test_breakpoints_that_work_are_healthy(doctor: Doctor, debugged: Debug) -> None:
    async with debugged() as job:
        line = line_of(job.path, "here")
        for condition in GOOD:
            await job.breakpoints(job.path, {"line": line, "condition": condition})
            assert await doctor.causes("--file", f"{job.path}:{line}") == [], condition
        await job.ends_well()


async def test_what_is_wrong_with_breakpoints(doctor: Doctor, user: User, debugged: Debug) -> None:
    async with debugged() as job:
        await names_nothing(doctor, job)
        await in_a_library(doctor, job)
        await in_another_folder(doctor, job, user.folder)
        await job.ends_well()


async def names_nothing(doctor: Doctor, job: Job) -> None:
    """A condition names what there is not."""
    line = line_of(job.path, "here")
    await job.breakpoints(job.path, {"line": line, "condition": "ranks(1): totl > 3"})
    found = await doctor.only("condition")
    assert found["where"] == f"{job.path}:{line}"
    assert "'totl'" in found["evidence"][0]
    assert "did you mean total?" in found["fix"][0]
    await job.breakpoints(job.path)


async def in_a_library(doctor: Doctor, job: Job) -> None:
    """A breakpoint is in code that is no user's."""
    wanted = {"line": lines_of(ENCODER, "if isinstance(o, str):")}
    (answer,) = await job.breakpoints(ENCODER, wanted)
    assert not answer["verified"]
    await job.told("justMyCode")  # the answer waits for ranks no longer than five seconds
    found = await doctor.only("just-my-code")
    assert found["where"] == f"{ENCODER}:{wanted['line']}"
    assert found["paste"] == '"justMyCode": false'
    await job.breakpoints(ENCODER)
    assert await doctor.causes() == []
    await doctor.only("just-my-code", "--file", ENCODER)


async def in_another_folder(doctor: Doctor, job: Job, folder: Path) -> None:
    """The user's project lies elsewhere: by a breakpoint, and by asking for a file."""
    here = folder / "here" / "proj"
    wrong = await doctor.only("path-mapping", "--file", f"{here}/train.py:3")
    entry = {"localRoot": str(here.parent), "remoteRoot": str(folder / "there")}
    assert json.loads(wrong["paste"]) == entry
    await job.breakpoints(f"{here}/train.py", {"line": 3})
    # Of both ranks: until both have told of their files there is a mapping for one, or none.
    await job.told(f"add {json.dumps(entry)} to pathMappings")
    found = await doctor.only("path-mapping")
    assert json.loads(found["paste"]) == entry
    assert "file missing" in found["evidence"][0]


async def test_a_library_without_the_filter_is_healthy(doctor: Doctor, debugged: Debug) -> None:
    async with debugged(justMyCode=False) as job:
        line = lines_of(ENCODER, "if isinstance(o, str):")
        await job.breakpoints(ENCODER, {"line": line, "condition": "o == 'never'"})
        assert await doctor.causes("--file", f"{ENCODER}:{line}") == []
        await job.ends_well()


def lines_of(path: str, text: str) -> int:
    """The first line of a file with these words."""
    lines = Path(path).read_text("utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if text in line)


async def test_a_mapping_that_fits_is_healthy_and_an_edited_file_is_told(
    doctor: Doctor, user: User, debugged: Debug
) -> None:
    here = user.folder / "here"
    here.mkdir()
    local = here / "train.py"
    local.write_text(PROGRAM, "utf-8")
    mapping = [{"localRoot": str(here), "remoteRoot": str(user.folder / "there" / "proj")}]
    async with debugged(pathMappings=mapping) as job:
        assert await doctor.causes("--file", f"{local}:3") == []
        local.write_text("# edited\n" + PROGRAM, "utf-8")
        found = await doctor.only("file-differs", "--file", f"{local}:3")
        assert "0-1" in found["evidence"][0]
        await job.breakpoints(str(local), {"line": 7, "condition": "False"})
        await job.told("file differs")
        found = await doctor.only("file-differs")
        assert found["evidence"][0].startswith(f"{local}:")
        await job.ends_well()


async def test_mappings_of_a_launch_configuration(doctor: Doctor, user: User) -> None:
    folder = user.folder / ".vscode"
    folder.mkdir()
    good = {"localRoot": "${workspaceFolder}", "remoteRoot": "/srv/proj"}
    gone = {"localRoot": "${workspaceFolder}/no-such", "remoteRoot": "/srv/proj"}
    bad = {"localRoot": "${workspaceFolder}", "remoteRoot": "proj"}
    every = [
        {"name": name, "type": "dap-mux", "request": "launch", "pathMappings": [mapping]}
        for name, mapping in (("good", good), ("gone", gone), ("bad", bad))
    ]
    (folder / "launch.json").write_text(json.dumps({"configurations": every}), "utf-8")
    found = await doctor.causes()
    assert [one["cause"] for one in found] == ["path-mapping", "path-mapping"]
    assert "no-such does not exist" in found[0]["evidence"][0]
    assert "remoteRoot" in found[1]["evidence"][0]


# Versions


@pytest.mark.parametrize(("version", "refused"), [("1.8.5", False), ("1.6.7", True)])
async def test_an_old_debugpy(
    version: str, refused: bool, doctor: Doctor, tmp_path: Path, debugged: Debug
) -> None:
    """A real one, which says that it is old; a session attaches to it, or refuses to."""
    old = tmp_path / "old"
    copy = old / "debugpy"
    shutil.copytree(Path(debugpy.__file__).parent, copy, ignore=shutil.ignore_patterns("*.pyc"))
    words = f"def get_versions():\n    return {{'version': '{version}'}}\n"
    (copy / "_version.py").write_text(words)
    async with debugged(env={"PYTHONPATH": str(old)}) as job:
        found = (await doctor.causes())[0]
        assert (found["cause"], found["ranks"]) == ("debugpy-old", "0-1")
        assert version in found["evidence"][0]
        if not refused:
            await job.ends_well()
    command = f"env PYTHONPATH={old} {sys.executable}"
    causes = await doctor.causes("--python", command)
    (seen,) = [one for one in causes if one["where"] == command]
    assert seen["paste"].startswith("pip install 'debugpy>=")


async def test_pythons(doctor: Doctor, user: User) -> None:
    assert await doctor.causes("--python", sys.executable) == []
    found = await doctor.only("debugpy-missing", "--python", f"{sys.executable} -S")
    assert found["paste"].startswith("pip install")
    found = await doctor.only("python", "--python", "no-such-python")
    assert "no-such-python" in found["evidence"][0]


async def test_a_command_that_a_folder_names_is_shown_and_never_started(user: User) -> None:
    """Nor is a module of that folder imported by the Python that the user names."""
    marker, module = user.folder / "marker", "import os\nopen('marker', 'w')\n"
    evil = user.folder / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {marker}\n")
    evil.chmod(0o755)
    user.script(module, "debugpy.py")
    configuration = {"name": "x", "type": "dap-mux", "request": "launch", "python": f"{evil} d"}
    (user.folder / ".vscode").mkdir()
    text = json.dumps({"configurations": [configuration]})
    (user.folder / ".vscode" / "launch.json").write_text(text)
    done = await user.does("doctor")
    assert (done.code, done.err) == (0, "")
    assert f"dap-mux doctor --python '{evil} d'" in " ".join(done.out.split())
    assert (await user.does("doctor", "--python", sys.executable)).code == 0
    assert not marker.exists()


# Clocks (those of torch: tests/launchers/test_while_paused.py)


async def test_the_schedulers_limit(
    doctor: Doctor, user: User, tmp_path: Path, debugged: Debug
) -> None:
    """SLURM is asked for the job that the ranks say they are of."""
    folder = tmp_path / "bin"
    folder.mkdir()
    squeue = folder / "squeue"
    user.environ["PATH"] = f"{folder}:{user.environ['PATH']}"
    async with debugged(env={"SLURM_JOB_ID": "77"}) as job:
        for left in ("UNLIMITED", "1-02:00:00"):
            says(squeue, left)
            assert await doctor.causes() == []
        says(squeue, "3:20")
        found = await doctor.only("clock")
        assert found["ranks"] == "0-1"
        assert "job 77" in found["evidence"][0]
        assert "in 3 min" in found["evidence"][0]
        await job.ends_well()


def says(program: Path, text: str) -> None:
    """A program that says just this."""
    program.write_text(f'#!/bin/sh\n[ "$3" = 77 ] && echo {text}\n', "utf-8")
    program.chmod(0o755)


# Running processes

WITH_A_DEBUGGER: Final = pytest.mark.skipif(
    not (shutil.which("gdb") or shutil.which("lldb")), reason="no native debugger is here"
)
SLEEPS: Final = "import ctypes, time; {}; print('up', flush=True); time.sleep(600)"
UNDUMPABLE: Final = "assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0"


@asynccontextmanager
async def sleeping(first: str = "") -> AsyncIterator[int]:
    """A Python that never heard of debugpy; yields its pid."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SLEEPS.format(first or "pass"), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        yield process.pid
    finally:
        process.kill()
        await process.wait()


@WITH_A_DEBUGGER
async def test_a_process_that_may_be_debugged_is_healthy(doctor: Doctor) -> None:
    async with sleeping() as pid:
        assert await doctor.causes(f"pid:{pid}") == []


@WITH_A_DEBUGGER
async def test_ptrace_is_forbidden(user: User) -> None:
    """By the process itself; root may all the same, unless, as in a container, the capability for
    it is taken away.
    """
    command = [str(Path(sys.executable).with_name("dap-mux")), "doctor", "--json"]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-sys_ptrace", *command]
    async with sleeping(UNDUMPABLE) as pid:
        process = await asyncio.create_subprocess_exec(
            *command, f"pid:{pid}", env=user.environ, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(), LIMIT)
    (found,) = json.loads(out)["causes"]
    assert process.returncode == 1
    assert (found["cause"], found["where"]) == ("ptrace", f"pid:{pid}")
    assert any("SYS_PTRACE" in line for line in found["fix"])


async def test_no_such_process_and_no_python(doctor: Doctor) -> None:
    process = await asyncio.create_subprocess_exec("sleep", "600")
    try:
        found = await doctor.only("process", f"pid:{process.pid}")
        assert "is not a Python process" in found["evidence"][0]
    finally:
        process.kill()
        await process.wait()
    found = await doctor.only("process", f"pid:{process.pid}")
    assert "no process" in found["evidence"][0]
