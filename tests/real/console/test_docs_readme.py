"""The first screen of README is true: its three commands print what it shows."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.bench import hang_chart
from tests.real.ranks.agents import START_UP, Start
from tests.support.clients.console_pages import (
    ROOT,
    Typed,
    announced,
    answer,
    answered,
    blocks,
    typed_in,
)
from tests.support.clients.consoles import PipedConsole, console_of_job
from tests.support.processes.commands import Command, User
from tests.support.processes.launchers import LAUNCH
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]

RUN, WHY, ATTACH = blocks("README.md")
README: Final = (ROOT / "README.md").read_text("utf-8")
RANKS: Final = 4


@pytest.fixture
def job(user: User) -> dict[str, str]:
    """The examples where the user works; the variables of a job that hangs."""
    for name in ("data_parallel.py", "hang.py"):
        shutil.copy(ROOT / "examples" / name, user.folder)
    return {
        "WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_ports(1)),
    }


@pytest.fixture
async def launcher(user: User, job: dict[str, str]) -> int:
    """A launcher of ranks that hang and know nothing of us, by its process ID."""
    user.script(LAUNCH, "launch.py")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "launch.py", str(RANKS), "hang.py", "--seconds", "0"),
        cwd=user.folder,
        env={**user.environ, **job},
        stdout=asyncio.subprocess.PIPE,
    )
    user.others.append(process)
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readuntil(b"step  2"), START_UP)
    return process.pid


async def types(console: PipedConsole, lines: list[Typed], folder: Path) -> None:
    """Type what the page types; each answer is the page's, and so is what comes by itself."""
    for line, shown in lines:
        said = answer(await console.does(line), folder)
        assert answered(said) == answered(shown), line
        for words in announced(shown):
            await console.sees(words)


async def left(console: PipedConsole, command: Command) -> None:
    console.type("release all", "quit")
    assert (await command.ends()).code == 0


async def test_run(user: User, job: dict[str, str]) -> None:
    run, console = await console_of_job(user, "data_parallel.py", "--seconds", "0", n=RANKS)
    await types(console, typed_in(RUN), user.folder)
    await left(console, run)


async def test_why(user: User, launcher: int) -> None:
    done = await user.does("why", f"pid:{launcher}")
    assert done.code == 21, done.err
    anonymous = (r"process \d+", "process N"), (r"0x[0-9a-f]+", "0xN"), (r"pid:\d+", "pid:N")
    said, shown = done.out, WHY
    for pattern, word in anonymous:
        said, shown = re.sub(pattern, word, said), re.sub(pattern, word, shown)
    assert said == shown


async def test_attach(user: User, start: Start, job: dict[str, str]) -> None:
    program = str(user.folder / "hang.py")
    words = ("--no-wait", program, "--seconds", "0")
    agents = [await start(*words, RANK=str(rank), **job) for rank in range(RANKS)]
    await until(lambda: "step  2" in agents[0].text(), within=START_UP, what="the hang")
    ports = [f"127.0.0.1:{each.record['port']}" for each in agents]
    attach = await user.start("attach", "--console", *ports, piped=True)
    console = PipedConsole(attach)
    await console.does("wait all running")
    await types(console, typed_in(ATTACH), user.folder)
    for agent in agents:
        agent.process.terminate()
    await left(console, attach)


@pytest.mark.skipif(shutil.which("py-spy", path=str(hang_chart.BIN)) is None, reason="no py-spy")
def test_the_chart_shows_what_its_script_measures() -> None:
    """With eight ranks; a Python has a frame more or less than another at the same line."""
    found = hang_chart.measure(hang_chart.SIZES[0])
    shown = re.findall(r">([\d,]+) lines", hang_chart.PICTURE.read_text("utf-8"))
    by_hand, why = (int(each) for each in shown[:2])
    assert found.why == why
    assert abs(found.by_hand - by_hand) <= 2 * found.ranks
    assert f"py-spy dump of each rank {shown[0]}, {shown[2]} and {shown[4]}" in README
    assert {*shown[1::2]} == {str(why)}
