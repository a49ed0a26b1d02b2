"""A rank that tests fork is, to its debugger and to itself, a rank that a user has started."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.conftest import Connect
from tests.support.processes.ranks import Rank, debugpy_ranks
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real

# All that a program could see of its start.
PROGRAM = """\
import os, signal, sys, threading, time, traceback

seen = [
    sys.argv,
    [each for each in sys.path if "pydevd" not in each],
    sys.flags,
    __name__,
    os.getcwd(),
    os.getsid(0) == os.getpid(),
    sorted(os.listdir("/proc/self/fd"), key=int)[:3],
    sorted(set(os.environ) - {"DEBUGPY_PORT"}),
    threading.active_count(),
    [(frame.name, frame.lineno) for frame in traceback.extract_stack()],
    [str(signal.getsignal(number)) for number in signal.valid_signals()],
    sys.stdin.read(),
]
for each in seen:
    print(each)
print("said", file=sys.stderr)
while not os.path.exists("seen_to_listen"):
    time.sleep(0.01)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


async def _ended(program: Path, *, forked: bool) -> tuple[int, str]:
    async with debugpy_ranks(
        1, program, wait=False, arguments=["7"], folder=program.parent, forked=forked
    ) as (rank,):
        (program.parent / "seen_to_listen").touch()
        outcome = await rank.ended(), rank.output
    (program.parent / "seen_to_listen").unlink()
    return outcome


async def test_its_program_sees_no_difference(program: Path) -> None:
    assert await _ended(program, forked=True) == await _ended(program, forked=False)


async def test_its_debugger_sees_no_difference(tmp_path: Path, connect: Connect) -> None:
    program = tmp_path / "program.py"
    program.write_text("def f():\n    breakpoint()\n    return 1\n\n\nf()\n")
    stacks = []
    for forked in (True, False):
        async with debugpy_ranks(1, program, forked=forked) as (rank,):
            client = await connect(rank.port, strict=False)
            await client.request("initialize", {"adapterID": "test"})
            attached = client.send("attach", {"justMyCode": False})
            await client.wait_event("initialized")
            await client.request("configurationDone", {})
            assert (await attached)["success"]
            stop = await client.wait_event("stopped")
            stack = await client.request("stackTrace", {"threadId": stop["threadId"]})
            stacks.append([(each["name"], each["line"]) for each in stack["stackFrames"]])
            await client.request("disconnect", {"terminateDebuggee": False})
    assert stacks[0] == stacks[1]
    assert [name for name, _ in stacks[0]][-2:] == ["f", "<module>"]


async def test_a_signal_ends_it_and_its_number_is_its_exit_code(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("while True: pass\n")
    async with debugpy_ranks(2, program, wait=False) as ranks:
        ranks[0].kill(signal.SIGTERM)
        assert await ranks[0].ended() == -signal.SIGTERM
        assert _running(ranks) == [1]
        ranks[1].kill()
        await until(lambda: not _running(ranks), within=10, what="rank 1 has ended")
        assert ranks[1].process.returncode == -signal.SIGKILL


def _running(ranks: list[Rank]) -> list[int]:
    return [each.rank for each in ranks if each.running]
