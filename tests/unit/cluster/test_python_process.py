"""What `pid:` says of processes that it cannot debug: real ones, each wrong in its own way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dap_mux.cluster import injection, python_process
from dap_mux.cluster.injection import debugger_for, injector_command, injector_environment
from dap_mux.cluster.python_process import RunningPython, refuse_to_trace
from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused
from dap_mux.system.programs import module_command, runs_module

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
SAYS_AND_WAITS = "print('here', flush=True); import sys; sys.stdin.read()"
TRACED = f"import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0); {SAYS_AND_WAITS}"
LOOKS_AS_NOBODY = """\
import os, sys
from dap_mux.cluster.python_process import RunningPython
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    RunningPython.read(os.getppid())
except Exception as error:
    print(type(error).__name__, error)
"""
GDB_FAILS = """\
Running: gdb --nw --pid 12 --eval-command='call (int)DoAttach(0, "import codecs;")'
0x00007f32b911c954 in select () at ../sysdeps/unix/sysv/linux/select.c:69
warning: File "/opt/python3.11-gdb.py" auto-loading has been declined
Couldn't write extended state status: Invalid argument.
No symbol "DoAttach" in current context.
[Inferior 1 (process 12) detached]
E+00000.769: Code injection into PID=12 failed:
             subprocess.CalledProcessError: Command 'gdb --nw' returned non-zero exit status 1.
Traceback (most recent call last):
subprocess.CalledProcessError: Command 'gdb --nw' returned non-zero exit status 1.
"""
LLDB_FAILS = """\
(lldb) expression --language c -- (int)DoAttach(0, "import codecs", 0)
error: use of undeclared identifier 'DoAttach'
Traceback (most recent call last):
dap_mux.rank.inject.InjectionFailed: lldb failed
"""


@contextmanager
def python(code: str, *before: str) -> Iterator[int]:
    """A Python that has begun to run `code`; its pid."""
    words = [*before, sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def test_a_python_of_ours() -> None:
    with python(SAYS_AND_WAITS) as pid:
        found = RunningPython.read(pid)
        assert found.version == sys.version_info[:2]
        assert found.runs
        assert found.environ["PATH"] == os.environ["PATH"]
        assert found.listening_port() is None
    assert not found.runs
    assert found.environ == {}


def test_nobody_there() -> None:
    with python(SAYS_AND_WAITS) as pid:
        pass
    with pytest.raises(NothingToConnect, match=f"no process {pid}; `pgrep"):
        RunningPython.read(pid)


def test_not_a_python() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            with pytest.raises(NothingToConnect, match=r"\(sleep\) is not a Python process"):
                RunningPython.read(process.pid)
        finally:
            process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_somebody_elses() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOKS_AS_NOBODY], capture_output=True, text=True, check=True
    )
    assert f"Refused process {os.getpid()} belongs to root; run dap-mux as that user" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network")
def test_one_with_a_network_of_its_own() -> None:
    unshare = shutil.which("unshare")
    assert unshare
    forbidden = pytest.raises(Refused, match="runs in a container, or in a network of its own")
    with python(SAYS_AND_WAITS, unshare, "-n") as pid, forbidden:
        RunningPython.read(pid)


def test_one_that_is_traced() -> None:
    who = rf"is already traced by .* \(process {os.getpid()}\)"
    with python(TRACED) as pid, pytest.raises(Refused, match=who):
        refuse_to_trace(RunningPython.read(pid))


@pytest.mark.parametrize("scope", [1, 2, 3])
def test_a_system_that_forbids_it(monkeypatch: pytest.MonkeyPatch, scope: int) -> None:
    """As Ubuntu does by default, and hardened systems for everybody."""
    monkeypatch.setattr(python_process, "_ptrace_scope", lambda: scope)
    monkeypatch.setattr(python_process, "_CAP_SYS_PTRACE", 0)
    why = rf"ptrace_scope is {scope}\); `sudo sysctl"
    with python(SAYS_AND_WAITS) as pid, pytest.raises(Refused, match=why):
        refuse_to_trace(RunningPython.read(pid))


async def test_neither_gdb_nor_lldb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(DapMuxError, match="neither gdb nor lldb is installed; install gdb"):
        await debugger_for([RunningPython(os.getpid(), (3, 11))])
    assert await debugger_for([RunningPython(os.getpid(), (3, 14))]) == ""  # which needs none


async def test_one_that_ends_meanwhile() -> None:
    with python(SAYS_AND_WAITS) as pid:
        process = RunningPython.read(pid)
    with pytest.raises(NothingToConnect, match=f"process {pid} ended while .* perhaps crashed"):
        await injection.bring_debugpy(process, "127.0.0.1", "gdb")


def test_the_processs_own_python_goes_in_by_remote_exec() -> None:
    """Both sides must be the same version; debugpy is the one that we have."""
    other = RunningPython(os.getpid(), (3, 99))
    command = injector_command(other, "127.0.0.1", "lldb")
    assert command == [
        str(Path(sys.executable).resolve()), *module_command("debugpy"),
        "--listen", "127.0.0.1:0", "--pid", str(os.getpid()),
    ]  # fmt: skip
    environment = injector_environment(other, {"PYTHONPATH": "x", "PATH": "/usr/bin"})
    assert (Path(environment["PYTHONPATH"]) / "debugpy").is_dir()
    # debugpy would go on with gdb, which nobody has tried
    assert shutil.which("gdb", path=environment["PATH"]) is None
    same = RunningPython(os.getpid(), (3, 11))
    assert "PYTHONPATH" not in injector_environment(same, {})


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("warning: x\nptrace: Operation not permitted.\nTraceback", "forbids attaching to a run"),
        ("a\nRuntimeError: Could not find .so\n", r"into process 12: RuntimeError: Could not"),
        ("", "no error message"),
        (GDB_FAILS, r"into process 12: Couldn't write extended state status: Invalid argument\.$"),
        (LLDB_FAILS, r"into process 12: error: use of undeclared identifier 'DoAttach'$"),
        ("syntax?\nprocess 12 is odd\n", "into process 12: process 12 is odd$"),
    ],
)
def test_what_the_injector_said_is_why(said: str, message: str) -> None:
    with pytest.raises(DapMuxError, match=message):
        raise injection._failure(RunningPython(12, (3, 11)), said)


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["python", *module_command("dap_mux.rank"), "--port", "1"], True),
        (["python", "-m", "dap_mux.rank"], True),
        (["python", "-c", "import runpy; runpy._run_module_as_main('dap_mux.rank')"], True),
        (["python", *module_command("dap_mux")], False),
        (["python", "dap_mux.rank"], False),
        (["python"], False),
    ],
)
def test_which_module_a_python_runs(words: list[str], runs: bool) -> None:
    assert runs_module(words, "dap_mux.rank") is runs
