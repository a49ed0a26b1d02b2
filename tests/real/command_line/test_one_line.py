"""One line, and nothing installed: from the wheel by `uvx` to the first stop of four ranks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from tests.support.processes import package_index, wheels
from tests.support.processes.commands import LIMIT, User, line_of, listed
from tests.support.processes.pythons import other_python
from tests.support.processes.waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
FIRST_STOP: Final = 60.0  # s; promised
TRAIN: Final = """\
import os
import sys

rank = int(os.environ["RANK"])
print(rank, sys.prefix)  # here
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with uv and a Python; what uv installs also runs `realpath` of the system."""
    folder = tmp_path_factory.mktemp("only")
    package_index.require(folder)
    subprocess.run([sys.executable, "-m", "venv", folder / "uv"], check=True)
    pip = (folder / "uv/bin/python", "-m", "pip", "--disable-pip-version-check")
    subprocess.run([*pip, "install", "--quiet", "uv"], check=True)
    (folder / "bin").mkdir()
    for name in ("uv", "uvx"):
        (folder / "bin" / name).symlink_to(folder / "uv/bin" / name)
    (folder / "bin/python3").symlink_to(Path(sys.executable).resolve())
    return folder / "bin"


@pytest.mark.parametrize("python", ["uv's", "active", "option"])
async def test_uvx_to_the_first_stop(
    user: User, wheel: Path, only: Path, tmp_path: Path, python: str
) -> None:
    """In an empty home; the ranks' Python is the active environment's, or that of `--python`."""
    user.command = only / "uvx"
    user.environ |= {**package_index.settings(), "PATH": f"{only}{os.pathsep}{os.defpath}"}
    words, prefix = [], ""
    if python != "uv's":
        chosen = other_python(tmp_path / "venv")
        prefix = str(tmp_path / "venv")
        words = ["--python", str(chosen)] if python == "option" else []
        user.environ |= {} if words else {"VIRTUAL_ENV": prefix}
    script = user.script(TRAIN)
    clock = asyncio.get_running_loop().time
    began = clock()
    run = ("--from", str(wheel), "dap-mux", "run", "-n", "4", *words, script)
    command = await user.start(*run)
    await until(
        lambda: any(user.sessions.glob("*.json")) or command.process.returncode is not None,
        within=FIRST_STOP,
        what="a session",
    )
    assert command.process.returncode is None, command.err
    (file,) = user.sessions.glob("*.json")
    session = json.loads(file.read_text("utf-8"))
    client = await DapClient.connect(session["host"], session["port"])
    here = line_of(script, "here")
    await client.handshake({"justMyCode": True}, breakpoints={script: [here]}, timeout=LIMIT)
    await client.wait_event("stopped", timeout=FIRST_STOP)
    took = clock() - began
    assert took <= FIRST_STOP, took
    print(f"{took:.1f} s to the first stop")
    await listed(client, "line", *[here] * 4)
    cast = {"ranks": "all", "command": "p sys.prefix"}
    (answer,) = (await client.request("cast", cast, timeout=LIMIT))["results"]
    assert prefix in answer["value"]
    assert str(Path(sys.prefix)) not in answer["value"]
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)
    await client.wait_event("terminated", timeout=LIMIT)
    await client.disconnect()
    await client.close()
    done = await command.ends()
    assert (done.code, len(done.out.splitlines())) == (0, 4), done.err
    assert os.environ["HOME"] != user.environ["HOME"]
