"""How a process has ended, in words."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from dap_mux.cluster.job import ExitReasons, ForeignProcess


@pytest.fixture
def system(tmp_path: Path) -> Path:
    (tmp_path / "kmsg").write_text("")
    return tmp_path


def ends(system: Path) -> ExitReasons:
    return ExitReasons(cgroups=system, kernel_log=system / "kmsg")


@pytest.mark.parametrize(
    ("code", "said"),
    [(3, "exit code 3"), (-11, "SIGSEGV (11)"), (-64, "SIGRTMAX (64)"), (-99, "signal 99")],
)
def test_codes_and_signals(system: Path, code: int, said: str) -> None:
    assert ends(system).of(41, code) == said


def test_a_kill_that_nobody_explains(system: Path) -> None:
    assert ends(system).of(41, -9) == "SIGKILL (9), not sent by dap-mux"
    assert ends(system).of(41, -9, by_us=True) == "SIGKILL (9)"


def test_the_kernel_says_so_of_this_process(system: Path) -> None:
    line = "6,1,{:.0f},-;Memory cgroup out of memory: Killed process {} (python) total-vm:1kB\n"
    now = time.monotonic() * 1e6
    (system / "kmsg").write_text(line.format(now, 41))
    assert "out of memory, according to the kernel's log" in ends(system).of(41, -9)
    assert ends(system).of(4, -9) == "SIGKILL (9), not sent by dap-mux"


def test_the_kernel_said_so_of_another_that_had_its_number(system: Path) -> None:
    line = "6,1,2,-;Out of memory: Killed process 41 (python) total-vm:1kB\n"
    (system / "kmsg").write_text(line)
    assert ends(system).of(41, -9) == "SIGKILL (9), not sent by dap-mux"


@pytest.mark.parametrize("file", ["memory.events", "memory/memory.oom_control"])
def test_its_cgroup_counts_one_more(system: Path, file: str) -> None:
    counter = system / file
    counter.parent.mkdir(exist_ok=True)
    counter.write_text("low 0\noom_kill 2\n")
    watch = ends(system)
    counter.write_text("low 0\noom_kill 3\n")
    said = watch.of(41, -9)
    assert said == (
        "SIGKILL (9), perhaps out of memory: the kernel killed a process of its cgroup for that"
    )
    assert watch.of(42, -9) == "SIGKILL (9), not sent by dap-mux"


def test_nothing_can_be_read(tmp_path: Path) -> None:
    assert ends(tmp_path / "none").of(41, -9) == "SIGKILL (9), not sent by dap-mux"


async def test_the_code_of_a_process_whose_parent_has_waited_for_it() -> None:
    words = [sys.executable, "-c", "input(); raise SystemExit(3)"]
    child = await anyio.open_process(words, stdin=subprocess.PIPE)
    process = ForeignProcess(child.pid)
    assert child.stdin is not None
    await child.stdin.send(b"\n")
    await child.wait()
    known = tuple(map(int, platform.release().split(".")[:2])) >= (6, 15)
    assert await process.ended() == (3 if known else None)
    process.close()
