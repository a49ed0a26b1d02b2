"""The test support itself against real debugpy: ranks start, are attached to, and end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Connect
from tests.support.processes import proc_net
from tests.support.processes.ranks import debugpy_ranks
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real

PROGRAM = """\
import os
rank = int(os.environ["RANK"])
total = rank * 10
print("total", total)
"""
LISTENING = """\
import os, debugpy
debugpy.listen(("127.0.0.1", int(os.environ["DEBUGPY_PORT"])))
debugpy.wait_for_client()
print("went on")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


async def test_each_rank_stops_at_a_breakpoint_and_runs_to_its_end(
    start_ranks: Callable[..., Any], connect: Connect, program: Path
) -> None:
    for rank in await start_ranks(2, program):
        client = await connect(rank.port, strict=False)
        await client.handshake({"justMyCode": False}, breakpoints={str(program): [4]})
        stop = await client.wait_event("stopped")
        stack = await client.request("stackTrace", {"threadId": stop["threadId"]})
        arguments = {"expression": "total", "frameId": stack["stackFrames"][0]["id"]}
        answer = await client.request("evaluate", arguments)
        assert answer["result"] == str(rank.rank * 10)
        await client.disconnect()
        assert await rank.ended() == 0
        assert rank.output.strip() == f"total {rank.rank * 10}"


async def test_a_script_may_listen_by_itself(
    start_ranks: Callable[..., Any], connect: Connect, tmp_path: Path
) -> None:
    script = tmp_path / "listens.py"
    script.write_text(LISTENING)
    (rank,) = await start_ranks(1, script, style="script")
    client = await connect(rank.port, strict=False)
    await client.handshake({"justMyCode": False})
    assert await rank.ended() == 0
    assert "went on" in rank.output


async def test_nothing_is_left_behind(program: Path) -> None:
    async with debugpy_ranks(2, program) as ranks:
        ports = [rank.port for rank in ranks]
        assert all(proc_net.listens(port) for port in ports)
    await until(lambda: not any(map(proc_net.listens, ports)), within=30, what="all ports free")


async def test_a_rank_that_dies_at_its_start_is_reported_with_its_output(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('no such dataset')")
    with pytest.raises(AssertionError, match="rank 0 ended with 1: no such dataset"):
        async with debugpy_ranks(1, script, style="script"):
            pass
