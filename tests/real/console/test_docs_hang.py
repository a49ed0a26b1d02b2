"""docs/hang.md is true: it finds the rank that hangs, with the lines that it shows."""

from __future__ import annotations

import inspect
import re
import shutil
import socket
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.real.ranks.agents import START_UP, Start
from tests.support.clients.console_pages import ROOT, announced, answer, answered, typed_lines
from tests.support.clients.consoles import PipedConsole
from tests.support.processes.commands import User
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]

RANKS = 4
_SOCKET: Final = re.compile(r"socket\.py:\d+")
_SOURCE, _FIRST = inspect.getsourcelines(socket.SocketIO.readinto)
_READ: Final = _FIRST + next(at for at, line in enumerate(_SOURCE) if "recv_into" in line)


def shown_here(lines: list[str]) -> list[str]:
    """Adapt the page to this Python: another `socket.py`, and since 3.12 no frame of a listcomp."""
    lines = [_SOCKET.sub(f"socket.py:{_READ}", line) for line in lines]
    if sys.version_info < (3, 12):
        return lines
    return [line for line in lines if "<listcomp>" not in line]


@pytest.mark.heavy
async def test_every_line_of_the_page(user: User, start: Start, tmp_path: Path) -> None:
    for name in ("data_parallel.py", "hang.py"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    job = {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports(1))}
    words = ("--no-wait", "hang.py", "--seconds", "0")
    agents = [await start(*words, RANK=str(rank), **job) for rank in range(RANKS)]
    attach = await user.start("attach", *(f"127.0.0.1:{each.record['port']}" for each in agents))
    await attach.session()
    await until(lambda: "step  2" in agents[0].text(), within=START_UP, what="the hang")
    join = await user.start("console", piped=True)
    console = PipedConsole(join)
    await console.does("wait all running")
    stops: list[str] = []
    first, *others = typed_lines("docs/hang.md")
    while answer(await console.does(first.line), tmp_path) != shown_here(first.shown):
        assert all(agent.process.returncode is None for agent in agents)
    for line, shown in others:
        said = answer(await console.does(line), tmp_path)
        assert answered(said) == answered(shown), line
        stops += announced(shown)
    assert stops == announced(console.said.splitlines())
    console.type("quit")
    assert (await join.ends()).code == 0
    (tmp_path / "shard-2").touch()
    assert [await agent.ends() for agent in agents] == [0] * RANKS, agents[2].text()
    attach.process.terminate()
    assert (await attach.ends()).code == 0
