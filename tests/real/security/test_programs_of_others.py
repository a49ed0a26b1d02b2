"""No command starts what a folder, a rank or another user's process names: it would leave a mark.

The folder is another user's, and each command is typed in it, as root and as an ordinary user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.support.processes.commands import COMMAND, LIMIT, clean_environment
from tests.support.processes.proc_net import free_ports

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users"),
]
ROOT: Final = Path(__file__).resolve().parents[3]
SOMEBODY, STRANGER = 65534, 1
PROGRAMS: Final = (
    "dap-mux python python3 python3.98 py-spy gdb lldb kubectl oc ssh squeue scontrol git node"
).split()
PACKAGES: Final = (
    "dap_mux debugpy anyio msgspec pygls psutil httpx yaml ray distributed monarch torch"
).split()
RANK: Final = """\
import os, sys
open(sys.argv[1], "w").close()
while os.read(0, 1):
    pass
"""


class Trap:
    """A folder full of programs, packages and settings that leave a mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.marks = folder / "marks"
        for each in (self.folder, self.marks):
            each.mkdir()
        self.marks.chmod(0o777)
        for name in PROGRAMS:
            program = self.folder / name
            program.write_text(f"#!/bin/sh\ntouch {self.marks}/{name}.$(id -u)\n", "ascii")
            program.chmod(0o755)
        for name in PACKAGES:
            (self.folder / name).mkdir()
            self._module(self.folder / name / "__init__.py", f"{name}.package")
        for name in ("sitecustomize", "usercustomize", "conftest"):
            self._module(self.folder / f"{name}.py", name)
        self._settings()
        for parent, folders, files in os.walk(self.folder):
            for one in (".", *folders, *files):
                os.chown(Path(parent) / one, STRANGER, STRANGER)

    def _module(self, path: Path, mark: str) -> None:
        start = str(self.marks / mark)
        path.write_text(f"import os\nopen({start!r} + f'.{{os.getuid()}}', 'w').close()\n", "ascii")

    def left_by(self, user: int) -> list[Path]:
        """The marks of this user; the stranger may start what it likes."""
        return [*self.marks.glob(f"*.{user}")]

    def _settings(self) -> None:
        python = str(self.folder / "python3")
        each = {"name": "x", "python": [python, "d"], "program": "train.py", "connect": "local:1"}
        configurations = [
            {**each, "type": kind, "request": request}
            for kind in ("dap-mux", "debugpy")
            for request in ("launch", "attach")
        ]
        (self.folder / ".vscode").mkdir()
        text = json.dumps({"version": "0.2.0", "configurations": configurations})
        (self.folder / ".vscode" / "launch.json").write_text(text, "utf-8")
        settings = json.dumps({"python.defaultInterpreterPath": python, "dapMux.python": python})
        (self.folder / ".vscode" / "settings.json").write_text(settings, "utf-8")
        (self.folder / "train.py").write_text("x = 1\n", "utf-8")


def as_user(user: int) -> list[str]:
    """Return the words that run the command behind them as this user.

    It may look into the folder where root's Python is, such as /root; else it is an ordinary user.
    """
    looks = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
    return ["setpriv", "--reuid", str(user), "--clear-groups", *looks, "--"] if user else []


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may enter."""
    with TemporaryDirectory(prefix="dm-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def rank_of(trap: Trap, folder: Path) -> Iterator[tuple[int, int]]:
    """Another user's rank, whose program seems to be that folder's Python: its pid and port."""
    port = free_ports(1)
    script, ready = folder / "rank.py", trap.marks / "ready"
    script.write_text(RANK, "ascii")
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(ROOT)}
    home = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": os.pathsep.join(packages)}
    named = ["bash", "-c", 'exec -a "$0" "$@"', str(trap.folder / "python3.98"), sys.executable]
    rank = ["-m", "dap_mux.rank", "--no-wait", "--port", str(port), str(script), str(ready)]
    line = [*as_user(STRANGER), *named, *rank]
    environ = {**clean_environment(), **home}
    with subprocess.Popen(line, env=environ, stdin=subprocess.PIPE) as process:
        try:
            until(ready.exists, "a rank")
            ready.unlink()
            yield process.pid, port
        finally:
            process.kill()


@contextlib.contextmanager
def killed(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """It does not outlive what is done with it."""
    try:
        yield
    finally:
        process.kill()


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def framed(message: dict[str, object]) -> str:
    text = json.dumps(message)
    return f"Content-Length: {len(text)}\r\n\r\n{text}"


def commands(pid: int, port: int) -> list[tuple[str, str]]:
    """The words of every command, and what is typed at it; the session is that of the folder."""
    console = "list\nwhy\nstacks\np x\nquit\n"
    dap = framed({"seq": 1, "type": "request", "command": "initialize", "arguments": {}})
    here: dict[str, object] = {"processId": None, "capabilities": {}, "rootUri": None}
    lsp = framed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": here})
    return [
        ("doctor", ""),
        ("doctor --file train.py:1", ""),
        (f"doctor pid:{pid}", ""),
        (f"doctor 127.0.0.1:{port}", ""),
        ("list", ""),
        ("list full", ""),
        (f"list 127.0.0.1:{port}", ""),
        ("cast all x", ""),
        ("compare x", ""),
        ("stacks", ""),
        (f"stacks pid:{pid}", ""),
        ("why", ""),
        ("why --attach", ""),
        (f"why pid:{pid}", ""),
        (f"why 127.0.0.1:{port} --attach", ""),
        ("why --from .", ""),
        ("console", console),
        ("sessions", ""),
        ("config show", ""),
        (f"attach pid:{pid}", ""),
        ("attach @../ranks", ""),
        ("attach k8s:pod/x", ""),
        ("attach slurm:1", ""),
        ("attach ray:127.0.0.1:1", ""),
        ("attach dask:127.0.0.1:1", ""),
        ("rerun dask:127.0.0.1:1 key", ""),
        ("run -n 1 --no-wait ../empty/train.py", ""),
        ("run --no-wait -- true", ""),
        ("lsp", lsp),
        ("adapter", dap),
        ("--print-completion bash", ""),
    ]


@pytest.mark.parametrize("user", [0, SOMEBODY], ids=["root", "user"])
def test_nothing_that_a_folder_a_rank_or_a_process_names(folder: Path, user: int) -> None:
    trap = Trap(folder)
    home, runtime, empty = (folder / name for name in ("home", "runtime", "empty"))
    for each in (home, runtime, empty):
        each.mkdir(mode=0o700)
        os.chown(each, user, user)
    (empty / "train.py").write_text("x = 1\n")
    environ = {**clean_environment(), "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
    environ["DAP_MUX_LISTEN"] = "127.0.0.1:0"

    def begin(words: str, *, typed: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        line = [*as_user(user), str(COMMAND), *shlex.split(words)]
        return subprocess.Popen(
            line, cwd=trap.folder, env=environ, stdin=typed,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def answered(words: str, typed: str = "") -> str:
        with begin(words, typed=subprocess.PIPE) as one, killed(one):
            try:
                out, _ = one.communicate(typed.encode(), timeout=8)
            except subprocess.TimeoutExpired:  # it would serve until it is told to end
                one.send_signal(signal.SIGTERM)
                out, _ = one.communicate(timeout=LIMIT)
        return out.decode()

    answers: dict[str, str] = {}
    with rank_of(trap, folder) as (pid, port), contextlib.ExitStack() as stack:
        (folder / "ranks").write_text(f"127.0.0.1:{port}\n")
        with begin(f"attach --listen 127.0.0.1:0 127.0.0.1:{port}") as session, killed(session):
            until(lambda: [*runtime.glob("dap-mux/*.json")], "a session")
            console = stack.enter_context(begin("console", typed=subprocess.PIPE))
            stack.enter_context(killed(console))
            until(lambda: "running" in answered("list"), "a rank that runs")
            for words, typed in commands(pid, port):
                answers[words] = answered(words, typed)
                assert not trap.left_by(user), words
    assert not trap.left_by(user)
    for words, said in answers.items():
        assert "Traceback" not in said, (words, said)
        assert "internal error" not in said, (words, said)
        assert "Permission denied: '/root" not in said, (words, said)
    assert "running" in answers["list"]
    assert "rank.py:3" in answers["why"]
    print(json.dumps(answers, indent=1))
