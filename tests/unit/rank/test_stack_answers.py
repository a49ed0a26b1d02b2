"""A rank of `dap-mux run` tells its stacks to who looks from outside, and is none the worse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from dap_mux.pure.insight.why.py_spy import threads_in
from dap_mux.session.outside_view import SILENT, NoDump, ask_rank

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc/PID/net/unix")

PROGRAM: Final = """\
import ctypes, os, sys, threading, time
from pathlib import Path
from dap_mux.rank.stack_answers import answer_looks
answer_looks(Path(sys.argv[1]))

def waits(shard, step):
    lock = threading.Lock(); lock.acquire()
    print("ready", flush=True)
    lock.acquire()

def keeps_the_gil(shard, step):
    print("ready", flush=True)
    ctypes.PyDLL(None).sleep(600)

def forks(shard, step):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.read(0, 1)
        os._exit(0)
    os.wait()

def works(shard, step):
    def deep(left):
        return deep(left - 1) + 1 if left else 0
    def more():
        while True:
            deep(80)
    for _ in range(3):
        threading.Thread(target=more, daemon=True).start()
    print("ready", flush=True)
    total = 0
    for number in range(int(1e9)):
        total += deep(50)
        if os.path.exists(sys.argv[1]):
            print(total == 50 * (number + 1), flush=True)
            os._exit(0)

{function}("shard-2", 7)
"""
WAITS_AT: Final = 9  # where `waits` acquires its lock
ARRIVES_S: Final = 30.0
LOOKS: Final = 150


@contextmanager
def running(folder: Path, function: str) -> Iterator[tuple[int, Callable[[], str]]]:
    """Run the program until the block is left; its pid, and what it prints next."""
    script = folder / "job.py"
    script.write_text(PROGRAM.format(function=function), "utf-8")
    command = [sys.executable, str(script), str(folder / "rank.failed")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        try:
            yield run.pid, run.stdout.readline
        finally:
            run.kill()


async def told(pid: int) -> list[dict[str, Any]]:
    answer = await ask_rank(pid)
    assert answer is not None
    assert threads_in(answer)  # it is read as py-spy's dumps are
    threads: list[dict[str, Any]] = json.loads(answer)
    return threads


async def forever(pid: int) -> None:
    while True:
        await told(pid)


async def test_where_a_rank_waits(tmp_path: Path) -> None:
    with running(tmp_path, "waits") as (pid, line):
        line()
        (main,) = await told(pid)
        with anyio.fail_after(ARRIVES_S):
            while main["frames"][0]["line"] != WAITS_AT:  # it has only printed yet
                (main,) = await told(pid)
    innermost, outermost = main["frames"]
    assert (main["thread_name"], main["os_thread_id"]) == ("MainThread", pid)
    assert (innermost["name"], innermost["line"]) == ("waits", WAITS_AT)
    assert outermost["name"] == "<module>"
    if sys.version_info >= (3, 13):
        shown = {one["name"]: one["repr"] for one in innermost["locals"]}
        assert shown == {"shard": '"shard-2"', "step": "7"}


async def test_a_rank_that_cannot_answer(tmp_path: Path) -> None:
    with running(tmp_path, "keeps_the_gil") as (pid, line):
        line()
        with pytest.raises(NoDump) as silent:
            await forever(pid)  # it may answer until it is in C
    assert str(silent.value) == SILENT


async def test_a_forked_child_is_not_asked(tmp_path: Path) -> None:
    """It has the program's sockets, and no thread that answers."""
    with running(tmp_path, "forks") as (pid, line):
        child = int(line())
        assert await ask_rank(child) is None
        (main,) = await told(pid)
    assert main["frames"][0]["name"] == "forks"


@pytest.mark.slow
async def test_no_look_changes_a_process_at_work(tmp_path: Path) -> None:
    """Its result is the same, and it keeps no memory: what it takes, it takes for the first."""

    def resident() -> int:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])

    with running(tmp_path, "works") as (pid, line):
        line()
        for _ in range(LOOKS // 10):
            await told(pid)
        before = resident()
        for _ in range(LOOKS):
            with anyio.fail_after(30):
                assert len(await told(pid)) == 4
        grown = (resident() - before) * os.sysconf("SC_PAGE_SIZE")
        (tmp_path / "rank.failed").touch()
        assert line() == "True\n"
    assert grown < 2 << 20
