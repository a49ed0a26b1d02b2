"""No false alarm, and no harm done, where nothing is wrong; with real debugpy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.conftest import Doctor, endpoint
from tests.doctor.subjects import ATTACH, Connect, attach_and_finish, left, tunnel, write_launch
from tests.real.driving import COUNTING, StartRanks, joined, let_end, observing
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT, User, listed

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]


@pytest.mark.quick
async def test_ranks_that_wait_to_be_debugged_are_healthy(
    doctor: Doctor, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    ranks = [
        *(await start_ranks(2, COUNTING, wait=True, arguments=[str(done)])),
        *(await start_ranks(1, COUNTING, wait=False, arguments=[str(done)])),
    ]
    assert await doctor.causes(*map(endpoint, ranks)) == []
    await attach_and_finish(connect, ranks, done)


async def test_a_proper_conversation_harms_nobody(
    doctor: Doctor, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    """Behind a tunnel only debugpy itself can tell: it is asked, twice, and nothing has changed."""
    held = await start_ranks(2, COUNTING, wait=True, arguments=[str(done)])
    (runs,) = await start_ranks(1, COUNTING, wait=False, arguments=[str(done)])
    ranks = [*held, runs]
    first = proc_net.free_ports(3)
    async with tunnel(*((first + n, rank.port) for n, rank in enumerate(ranks))):
        for _ in range(2):
            assert await doctor.causes(f"127.0.0.1:{first}-{first + 2}") == []
            await left(*ranks)
    let_end(done)  # one that was let go would end
    assert await runs.ended(within=LIMIT) == 0
    assert all(rank.running for rank in held)
    await attach_and_finish(connect, held, done)


async def test_a_session_and_its_launch_configuration_are_healthy(
    doctor: Doctor, user: User, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    ranks = await start_ranks(2, COUNTING, wait=True, arguments=[str(done)])
    attach = await user.start("attach", *map(endpoint, ranks))
    session = await attach.session()
    connection = {"host": "localhost", "port": session["port"]}
    configuration = {"name": "ours", "type": "debugpy", "request": "attach", "connect": connection}
    write_launch(user, configuration)
    client = await joined(attach, attach={**ATTACH, "justMyCode": True})
    await listed(client, "state", "running", "running")
    assert await doctor.causes() == []
    assert await doctor.causes(f"127.0.0.1:{session['port']}") == []
    assert await doctor.causes(*map(endpoint, ranks)) == []
    await client.disconnect(timeout=LIMIT)
    await left(*ranks)
    assert await doctor.causes() == []
    await attach_and_finish(connect, [], done)


async def test_ranks_that_call_their_session_are_healthy(
    doctor: Doctor, user: User, done: Path
) -> None:
    """They listen nowhere: before anybody is attached, while somebody is, and after that."""
    run = await user.start("run", "--dial", "-n", "2", COUNTING, str(done))
    client = await observing(run)
    await listed(client, "host", "127.0.0.1", "127.0.0.1")  # both have called
    entries = await listed(client, "state", "waiting", "waiting")
    assert [entry["endpoint"] for entry in entries] == [None, None]
    assert await doctor.causes() == []
    other = await joined(run, name="other", attach={**ATTACH, "justMyCode": True})
    await listed(client, "state", "running", "running")
    assert await doctor.causes() == []
    await other.disconnect(timeout=LIMIT)
    await listed(client, "state", "waiting", "waiting")
    assert await doctor.causes() == []
    let_end(done)
    assert (await run.ends()).code == 0


async def test_nothing_to_look_at_is_healthy(doctor: Doctor, user: User) -> None:
    assert await doctor.causes() == []
    done = await user.does("doctor")
    assert done.out.endswith("no problems found\n")
