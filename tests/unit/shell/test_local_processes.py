"""Whether a process of a rank has ended, by what it has said of itself."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from dap_mux.rank.injected import source_of
from dap_mux.shell.local_machine import LocalProcesses, is_over, read_processes
from tests.support.processes.waiting import until

LIMIT = 30.0  # s; not a wait
IDENTITY = source_of("attach/process_identity")
SAYS_WHO = f"{IDENTITY}\nprint(process_identity(), flush=True)\ninput()\n"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", SAYS_WHO]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as process:
        yield process
        process.kill()


def who(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_it_runs_and_ends(process: subprocess.Popen[str]) -> None:
    said = who(process)
    assert said
    assert not is_over(said)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_over(said)  # also while its parent has not looked
    process.wait(LIMIT)
    assert is_over(said)


def test_another_has_its_pid(process: subprocess.Popen[str]) -> None:
    boot, space, pid, start = who(process).split(" ")
    assert is_over(f"{boot} {space} {pid} {int(start) - 1}")


def test_it_is_not_of_this_machine(process: subprocess.Popen[str]) -> None:
    boot, space, _, start = who(process).split(" ")
    other = "0" + boot[1:] if boot[0] != "0" else "1" + boot[1:]
    gone = 2**31 - 1
    assert is_over(f"{boot} {space} {gone} {start}")
    assert not is_over(f"{other} {space} {gone} {start}")
    assert not is_over(f"{boot} pid:[1] {gone} {start}")


@pytest.mark.parametrize("said", ["", "True", "../.. pid:[1] 1 1", "x" * 100_000, "1 2 3 4"])
def test_what_is_no_process(said: str) -> None:
    assert not is_over(said)


async def test_its_end_is_told(process: subprocess.Popen[str]) -> None:
    """That it runs, and then that it does not any more."""
    told: asyncio.Queue[bool | None] = asyncio.Queue()
    watch = LocalProcesses()
    watch.watch(1, who(process), told.put_nowait)
    assert await asyncio.wait_for(told.get(), LIMIT) is True
    process.kill()
    assert await asyncio.wait_for(told.get(), LIMIT) is False
    watch.close()


async def test_one_that_is_just_ending_is_not_told_as_running(
    process: subprocess.Popen[str],
) -> None:
    told: asyncio.Queue[bool | None] = asyncio.Queue()
    said = who(process)
    process.kill()
    LocalProcesses().watch(1, said, told.put_nowait)
    assert await asyncio.wait_for(told.get(), LIMIT) is False


async def test_nobody_here_knows_of_it() -> None:
    told: asyncio.Queue[bool | None] = asyncio.Queue()
    LocalProcesses().watch(1, "", told.put_nowait)
    assert await asyncio.wait_for(told.get(), LIMIT) is None


async def test_one_that_is_forgotten_is_watched_no_longer(
    process: subprocess.Popen[str],
) -> None:
    told: asyncio.Queue[bool | None] = asyncio.Queue()
    before, watch = asyncio.all_tasks(), LocalProcesses()
    said = who(process)
    for token in (1, 2):
        watch.watch(token, said, told.put_nowait)
    watch.forget(1)
    watch.forget(3)
    assert await asyncio.wait_for(told.get(), LIMIT) is True
    process.kill()
    assert await asyncio.wait_for(told.get(), LIMIT) is False
    await until(lambda: asyncio.all_tasks() == before, within=LIMIT, what="no task is left")
    assert told.empty()


# Which processes of this machine ranks are, by what is known of them.

TABLE: Final = "net/tcp"


class _TablesRead:
    """Counts how often a table of all connections is opened, from now on; hooks stay."""

    def __init__(self) -> None:
        self.count = 0
        self._on = True
        sys.addaudithook(self._opened)

    def stop(self) -> int:
        self._on = False
        return self.count

    def _opened(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._on and event == "open" and TABLE in str(arguments[0]):
            self.count += 1


def read_of(ports: list[int]) -> tuple[dict[str, int], int]:
    """Return the pids by identity, and how often the system's tables were read."""
    tables = _TablesRead()
    found = read_processes([f":{port}" for port in ports])
    return {each: process.pid for each, process in found.items()}, tables.stop()


def test_listeners_are_found_by_their_ports() -> None:
    """All of them at once: a table may have thousands of rows, and a job hundreds of ranks."""
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(17)]
        ports = [server.getsockname()[1] for server in servers]
        servers.pop().close()
        found, times = read_of(ports)
        assert found == {f":{port}": os.getpid() for port in ports[:-1]}
        assert times == read_of(ports[:1])[1]


def test_threads_that_are_not_pythons_are_left_out() -> None:
    """Those of gloo wake nearly as often as one that waits for Python's global lock."""
    named, ends = threading.Event(), threading.Event()

    def run() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("gloo_tcp_loop")
        named.set()
        ends.wait()

    thread = threading.Thread(target=run)
    thread.start()
    named.wait()
    found = read_processes([str(os.getpid())])[str(os.getpid())]
    ends.set()
    thread.join()
    assert os.getpid() in found.switches
    assert thread.native_id not in found.switches
