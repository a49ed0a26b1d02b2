"""`DAP_MUX_ANNOUNCE`: a job in an editor's terminal tells the editor which session to join."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.commands import LIMIT, Command, User
from tests.support.processes.run_command import COUNT, WAIT, start

pytestmark = [pytest.mark.real, pytest.mark.heavy]


class Window:
    """The editor's end: a socket in a folder of its own, and what was said there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own = path.with_name("own.sock")  # another name of the same socket
        self.said: asyncio.Queue[bytes] = asyncio.Queue()
        self.calls = 0

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        self.said.put_nowait(await reader.read())
        writer.close()

    async def nobody_has_called(self) -> None:
        """Whoever has called came before this call of our own, and would be counted first."""
        _, writer = await asyncio.open_unix_connection(self.own)
        writer.write_eof()
        assert await asyncio.wait_for(self.said.get(), LIMIT) == b""
        writer.close()
        assert self.calls == 1

    async def heard(self) -> dict[str, Any]:
        said = await asyncio.wait_for(self.said.get(), LIMIT)
        assert said.endswith(b"\n")
        told: dict[str, Any] = json.loads(said)
        return told


@pytest.fixture
async def window() -> AsyncIterator[Window]:
    # A socket's path may have 100 letters or so, and a test's own folder has more.
    with tempfile.TemporaryDirectory() as folder:
        window = Window(Path(folder) / "announce.sock")
        server = await asyncio.start_unix_server(window.hear, window.path)
        window.path.chmod(0o600)
        window.own.hardlink_to(window.path)
        yield window
        server.close()


async def run(user: User, path: Path, text: str = COUNT, *flags: str) -> Command:
    user.script(text)
    return await start(user, *flags, "train.py", n=1, DAP_MUX_ANNOUNCE=str(path))


async def test_run_tells_where_its_session_is_and_nothing_secret(
    user: User, window: Window
) -> None:
    job = await run(user, window.path)
    told = await window.heard()
    file = json.loads(job.session_path.read_text("utf-8"))
    assert (told["name"], told["cwd"]) == ("train.py", str(user.folder))
    for key in ("host", "port", "unix", "pid", "groups"):
        assert told[key] == file[key]
    assert file["token"] not in json.dumps(told)
    await job.says("announced the session to the editor of this terminal")
    assert "Remote Attach to Cluster" not in job.err


async def test_attach_tells_too(user: User, window: Window) -> None:
    env = {"DAP_MUX_ANNOUNCE": str(window.path)}
    attached = await user.start("attach", "trainer=localhost:1", env=env)
    told = await window.heard()
    assert (told["name"], told["groups"]) == ("trainer=localhost:1", ["trainer"])
    assert attached.process.returncode is None


async def test_who_has_chosen_the_console_is_left_alone(user: User, window: Window) -> None:
    job = await run(user, window.path, "print(1)", "--no-wait", "--console")
    await job.ends()
    await window.nobody_has_called()


async def gone(window: Window) -> None:
    window.path.unlink()


async def open_to_others(window: Window) -> None:
    window.path.chmod(0o666)


async def a_file(window: Window) -> None:
    window.path.unlink()
    window.path.write_text("", "utf-8")
    window.path.chmod(0o600)


async def a_link(window: Window) -> None:
    real = window.path.with_name("elsewhere")
    window.path.rename(real)
    window.path.symlink_to(real)


@pytest.mark.parametrize("change", [gone, open_to_others, a_file, a_link])
async def test_any_other_place_is_passed_over_and_the_job_runs(
    user: User, window: Window, change: Any
) -> None:
    await change(window)
    job = await run(user, window.path, WAIT.replace("while not", "while False and not"))
    await job.says("ranks wait for a debugger")
    await window.nobody_has_called()
