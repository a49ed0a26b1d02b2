"""A real VS Code to serve to a browser: code-server, with a home and a profile of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dap_mux.system import procfs
from tests.support.processes.waiting import until

VERSION: Final = "4.100.3"
_READY: Final = 60.0  # s; not a wait
_FOREIGN: Final = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "DAP_MUX_", "DEBUG", "XDG_", "VSCODE")
_OPTIONS: Final = (
    "--auth none --bind-addr 127.0.0.1:0 --disable-telemetry --disable-update-check "
    "--disable-workspace-trust --disable-getting-started-override"
).split()
SETTINGS: Final[dict[str, Any]] = {
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.tips.enabled": False,
    "workbench.reduceMotion": "on",
    "extensions.ignoreRecommendations": True,
    "extensions.autoCheckUpdates": False,
    "telemetry.telemetryLevel": "off",
    "terminal.integrated.gpuAcceleration": "off",  # its text is in the page then
    "git.enabled": False,
    "python.defaultInterpreterPath": sys.executable,  # a login shell's PATH is another
    "remote.autoForwardPorts": False,
    "editor.minimap.enabled": False,
    "window.commandCenter": False,
    "window.restoreWindows": "none",
    "chat.commandCenter.enabled": False,
}


class Missing(Exception):
    """This machine has no VS Code for tests, and why."""


def entry() -> Path:
    """The program of code-server as `tests/vscode/install` leaves it, or `Missing`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "dap-mux" / f"vscode-{VERSION}"
    if not (folder / "complete").exists():
        raise Missing("code-server is not installed: run tests/vscode/install")
    return folder / "node_modules/code-server/out/node/entry.js"


def chromium() -> str:
    """The browser, or `Missing`."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        raise Missing("Chromium is not installed: run tests/vscode/install")
    return found


@dataclass
class CodeServer:
    """A running server. `folder` is its home; all its processes know it by that name."""

    folder: Path
    port: int = 0

    @property
    def environ(self) -> dict[str, str]:
        """Its environment, in which nothing of ours is left."""
        kept = {key: text for key, text in os.environ.items() if not key.startswith(_FOREIGN)}
        return {
            **kept,
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_RUNTIME_DIR": str(self.folder / "runtime"),
        }

    @property
    def extensions(self) -> Path:
        """Where its extensions are."""
        return self.folder / "extensions"

    def command(self, *words: str) -> list[str]:
        """`code-server WORDS` on this profile."""
        places = ["--user-data-dir", str(self.folder / "user")]
        places += ["--extensions-dir", str(self.extensions)]
        return ["node", str(entry()), *_OPTIONS, *places, *words]

    def settings(self, **changed: Any) -> None:
        """Write the user's settings; an open window follows."""
        path = self.folder / "user" / "User" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**SETTINGS, **changed}), "utf-8")

    def processes(self) -> Iterable[int]:
        """Every process that lives in this home: server, extension hosts, what they started."""
        home = str(self.folder / "runtime")
        return (pid for pid in procfs.pids() if procfs.environ(pid).get("XDG_RUNTIME_DIR") == home)

    def knows(self, session: Path) -> None:
        """Let its extensions find a session: each test's user has a folder for these alone."""
        folder = self.folder / "runtime" / "dap-mux"
        folder.mkdir(mode=0o700, exist_ok=True)
        part = folder / f".{session.name}"  # it appears whole, and is never anybody else's to read
        shutil.copy(session, part)
        part.replace(folder / session.name)

    def restart_extensions(self) -> None:
        """End the process in which extensions run; VS Code starts another."""
        host = "--type=extensionHost"
        pids = [pid for pid in self.processes() if host in (procfs.command_line(pid) or ())]
        assert pids, "no extension host"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    async def end(self) -> None:
        """End them all, those too that are being started meanwhile."""

        def gone() -> bool:
            found = list(self.processes())
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not found

        await until(gone, within=_READY, what="nothing is left of VS Code")


@asynccontextmanager
async def serving(
    folder: Path, *, linked: Sequence[Path] = (), packages: Sequence[Path] = ()
) -> AsyncIterator[CodeServer]:
    """Serve a clean profile with these extensions: folders as they are, and .vsix packages."""
    server = CodeServer(folder)
    (folder / "runtime").mkdir(parents=True)
    server.extensions.mkdir()
    server.settings()
    for extension in linked:
        about = json.loads((extension / "package.json").read_text("utf-8"))
        name = f"{about['publisher']}.{about['name']}-{about['version']}"
        shutil.copytree(extension, server.extensions / name)
    for package in packages:
        await _install(server, package)
    log = folder / "server.log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *server.command(),
            env=server.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=asyncio.subprocess.STDOUT,
        )
    try:
        said = re.compile(r"HTTP server listening on http://127\.0\.0\.1:(\d+)\D")
        await until(lambda: said.search(log.read_text()), within=_READY, what="it listens")
        server.port = int(said.findall(log.read_text())[0])
        yield server
    finally:
        await server.end()
        await process.wait()


async def _install(server: CodeServer, package: Path) -> None:
    """As a user installs a .vsix."""
    process = await asyncio.create_subprocess_exec(
        *server.command("--install-extension", str(package)),
        env=server.environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
