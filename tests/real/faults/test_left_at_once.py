"""A rank that waits for a debugger, and one that comes, configures and is gone: it runs on.

debugpy's `wait_for_client` looks every 20 ms for who is there now. The ranks here are held up
until the session has left them, and look only then.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.real.driving import driving
from tests.real.ranks.agents import clean_environment
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import debugpy_ranks
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real
MORE_THAN_A_PIPE_HOLDS = 1 << 20

SLOW_TO_LOOK = """\
import os
import sys
import threading
import time
from pathlib import Path

import debugpy

debugpy.listen(int(os.environ["DEBUGPY_PORT"]))
debugger = sys.modules["pydevd"].get_global_debugger()
work = debugger.process_internal_commands


def work_and_be_held_up(*which):
    work(*which)
    while threading.current_thread() is threading.main_thread() and not Path(sys.argv[1]).exists():
        time.sleep(0.01)


debugger.process_internal_commands = work_and_be_held_up
debugpy.wait_for_client()
print("runs on")
"""


async def test_debugpys_own_wait(tmp_path: Path) -> None:
    program, gone = tmp_path / "train.py", tmp_path / "gone"
    program.write_text(SLOW_TO_LOOK)
    async with debugpy_ranks(2, program, arguments=[str(gone)], style="script") as ranks:
        async with driving(ranks) as driver:
            await driver.states("running", "running")
            await driver.leave()
            await driver.session.driver.no_links()
        gone.touch()
        assert [await rank.ended() for rank in ranks] == [0, 0]
        assert ["runs on" in rank.output for rank in ranks] == [True, True]


SLOW_TO_STOP = """\
import os
import sys
import time
from pathlib import Path

import debugpy

debugpy.listen(int(os.environ["DEBUGPY_PORT"]))
asked, gone = map(Path, sys.argv[1:])


def reached():
    asked.touch()
    while not gone.exists():
        time.sleep(0.01)
    return True


debugpy.wait_for_client()
while not gone.exists():
    time.sleep(0.01)  # here
print("runs on")
"""


async def test_a_breakpoint_whose_condition_takes_longer_than_they_stay(tmp_path: Path) -> None:
    """debugpy stops there, and nobody is left to let it go on."""
    program, asked, gone = (tmp_path / name for name in ("train.py", "asked", "gone"))
    program.write_text(SLOW_TO_STOP)
    here = {"line": line_of(str(program), "here"), "condition": "reached()"}
    words = [str(asked), str(gone)]
    async with debugpy_ranks(1, program, arguments=words, style="script") as (rank,):
        async with driving([rank.port], {str(program): [here]}) as driver:
            await until(asked.exists, within=LIMIT, what="the condition is asked for")
            await driver.leave()
            await driver.session.driver.no_links()
        gone.touch()
        assert await rank.ended() == 0
        assert "runs on" in rank.output


async def test_a_wait_of_our_agents_that_has_not_begun(tmp_path: Path) -> None:
    """It says that it listens, and cannot go on to wait: nobody reads what it says."""
    program, ready = tmp_path / "train.py", tmp_path / "ready.json"
    program.write_text("print('runs on')\n")
    reader, writer = full_pipe()
    rank = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dap_mux.rank", "--port", "0", "--ready-file", ready, program,
        env=clean_environment(), stdout=asyncio.subprocess.PIPE, stderr=writer,
    )  # fmt: skip
    os.close(writer)
    try:
        await until(ready.exists, within=LIMIT, what="it listens")
        async with driving([json.loads(ready.read_text())["port"]]) as driver:
            await driver.states("running")
            await driver.leave()
            await driver.session.driver.no_links()
        os.read(reader, MORE_THAN_A_PIPE_HOLDS)
        printed, _ = await asyncio.wait_for(rank.communicate(), LIMIT)
        assert (rank.returncode, printed) == (0, b"runs on\n")
        assert b"listens for a debugger" in os.read(reader, MORE_THAN_A_PIPE_HOLDS)
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            rank.kill()


def full_pipe() -> tuple[int, int]:
    """A pipe that takes no byte more: who writes into it waits for a reader."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (4096, 1):
        with suppress(BlockingIOError):
            while os.write(writer, b"." * size):
                pass
    os.set_blocking(writer, True)
    return reader, writer
