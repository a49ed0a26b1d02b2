"""Ranks that somebody else has, and adapters that no longer serve anybody; with real debugpy."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import ConnectionLost, RequestFailed
from dap_mux.system import procfs
from tests.doctor.conftest import Doctor, endpoint
from tests.doctor.subjects import ATTACH, Connect, left, program, reason, tunnel
from tests.real.driving import COUNTING, StartRanks, joined
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT, User, listed
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]
# Listens on a port, and ends with the first who connects.
DIES: Final = """\
import socket
import sys

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as door:
    door.accept()
"""


# Already attached


async def test_another_debugger_is_attached(
    doctor: Doctor, running: Rank, connect: Connect
) -> None:
    client = await connect(running.port, strict=False)
    await client.handshake(ATTACH, timeout=LIMIT)
    found = await doctor.only("already-attached", endpoint(running))
    assert f"(pid {os.getpid()})" in found["evidence"][0]
    port = proc_net.free_ports(1)
    async with tunnel((port, running.port)):
        found = await doctor.only("already-attached", f"127.0.0.1:{port}")
    assert "already being debugged" in found["evidence"][0]
    assert (await client.request("evaluate", {"expression": "6*7"}, timeout=LIMIT))[
        "result"
    ] == "42"
    await client.disconnect(timeout=LIMIT)
    await left(running)
    assert await doctor.causes(endpoint(running)) == []


async def test_a_session_whose_rank_somebody_else_has(
    doctor: Doctor, user: User, running: Rank, connect: Connect
) -> None:
    other = await connect(running.port, strict=False)
    await other.handshake(ATTACH, timeout=LIMIT)
    attach = await user.start("attach", endpoint(running))
    client = await joined(attach, attach=ATTACH)
    await reason(client, "already being debugged")
    found = await doctor.only("already-attached")
    assert found["ranks"] == "0"
    await other.disconnect(timeout=LIMIT)
    await listed(client, "state", "running")
    assert await doctor.causes() == []


# Wedged


async def test_a_bare_connection(
    doctor: Doctor, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    """It ends the adapter, silences it, or (rarely) does no harm; the doctor tells which."""
    for _ in range(10):
        (rank,) = await start_ranks(1, COUNTING, wait=False, arguments=[str(done)])
        with socket.create_connection(("127.0.0.1", rank.port)):
            pass
        await left(rank)  # or dead of it; while it does not know yet, the doctor says just that
        found = await doctor.causes(endpoint(rank))
        if not found and not await can_be_attached(connect, rank):
            # The adapter noticed that end only after the doctor had looked.
            found = await doctor.causes(endpoint(rank))
            assert found
        if found:
            assert [one["cause"] for one in found] == ["wedged-adapter"]
            assert "has ended" in str(found) or "accepts connections" in str(found)
            return
    raise AssertionError("ten bare connections, and no adapter has come to harm")


async def can_be_attached(connect: Connect, rank: Rank) -> bool:
    """Whether a debugger is let in, and out again."""
    try:
        client = await connect(rank.port, strict=False)
        await client.handshake(ATTACH, timeout=LIMIT)
        await client.disconnect(timeout=LIMIT)
    except (OSError, ConnectionLost, RequestFailed, TimeoutError):
        return False
    return True


async def test_an_adapter_that_has_ended_or_does_as_it_is_talked_to(
    doctor: Doctor, running: Rank, tmp_path: Path
) -> None:
    """The doctor has seen it, and is hung up on: that is no tunnel."""

    async def is_named() -> None:
        found = await doctor.only("wedged-adapter", endpoint(running))
        assert f"(pid {running.pid})" in found["evidence"][0]
        assert "has ended" in found["evidence"][0]

    os.kill(running.adapter, signal.SIGKILL)
    await until(lambda: not proc_net.listens(running.port), within=LIMIT, what="the port is gone")
    await is_named()
    adapter = tmp_path / "debugpy" / "adapter"
    adapter.parent.mkdir()
    adapter.write_text(DIES, "utf-8")
    async with program(str(adapter), str(running.port), listens=running.port):
        await is_named()


async def test_an_adapter_that_hangs(doctor: Doctor, running: Rank) -> None:
    os.kill(running.adapter, signal.SIGSTOP)
    try:
        # A signal takes its way.
        await until(lambda: is_halted(running.adapter), within=LIMIT, what="it is halted")
        found = await doctor.only("wedged-adapter", endpoint(running))
        assert "is suspended" in found["evidence"][0]
    finally:
        os.kill(running.adapter, signal.SIGCONT)


def is_halted(pid: int) -> bool:
    found = procfs.stat(pid)
    return found is not None and found.state == "T"


async def test_a_rank_that_was_continued_while_it_ran(
    doctor: Doctor, user: User, running: Rank, connect: Connect
) -> None:
    """Its adapter stays attached for ever, with no client left."""
    first = await connect(running.port, strict=False, all_answered=False)
    await first.handshake(ATTACH, timeout=LIMIT)
    first.send("continue", {"threadId": 1})
    with pytest.raises(TimeoutError):
        await first.request("threads", timeout=1)
    await first.close()
    attach = await user.start("attach", endpoint(running))
    client = await joined(attach, attach=ATTACH, all_answered=False)
    await reason(client, "already being debugged")
    found = await doctor.only("wedged-adapter")
    assert "no other client is connected" in found["evidence"][0]
