"""Why a rank cannot be reached: each cause brought about on purpose, with real debugpy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.conftest import Doctor, endpoint
from tests.doctor.subjects import ATTACH, Connect, attach_and_finish, program, tunnel, write_launch
from tests.real.driving import COUNTING, StartRanks, joined
from tests.support.processes import proc_net
from tests.support.processes.commands import User, listed
from tests.support.processes.ranks import Rank

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]


# Refused


async def test_nothing_listens(doctor: Doctor, free_port: int) -> None:
    found = await doctor.only("refused", f"127.0.0.1:{free_port}")
    assert found["where"] == f"127.0.0.1:{free_port}"
    assert f"listens on 127.0.0.1:{free_port}" in found["evidence"][0]


async def test_a_launch_configuration_that_leads_nowhere(
    doctor: Doctor, user: User, free_port: int
) -> None:
    connection = {"host": "127.0.0.1", "port": free_port}
    write_launch(
        user,
        {"name": "cluster", "type": "dap-mux", "request": "attach", "connect": connection},
        {"name": "other", "type": "node", "request": "attach", "port": 9229},
    )
    found = await doctor.only("refused")
    assert '.vscode/launch.json, "cluster"' in found["evidence"][0]


async def test_ranks_of_a_session_that_are_not_there(
    doctor: Doctor, user: User, running: Rank
) -> None:
    first = proc_net.free_ports(2)
    attach = await user.start("attach", endpoint(running), f"127.0.0.1:{first}-{first + 1}")
    client = await joined(attach, attach=ATTACH)
    await listed(client, "state", "running", "waiting", "waiting")
    found = await doctor.only("refused")
    assert found["ranks"] == "1-2"
    assert found["where"] == f"127.0.0.1:{first}-{first + 1}"


# Wrong port


async def test_somebody_else_listens_there(doctor: Doctor, free_port: int) -> None:
    words = ("-m", "http.server", "--bind", "127.0.0.1", str(free_port))
    async with program(*words, listens=free_port):
        found = await doctor.only("wrong-port", f"127.0.0.1:{free_port}")
    assert "does not speak the debug adapter protocol" in found["evidence"][0]


async def test_a_session_is_no_rank(doctor: Doctor, user: User, running: Rank) -> None:
    """Somebody else's session, that is: one's own is looked at."""
    attach = await user.start("attach", endpoint(running))
    session = await attach.session()
    other = {"XDG_RUNTIME_DIR": str(user.folder)}
    done = await user.does("doctor", f"127.0.0.1:{session['port']}", env=other)
    assert done.code == 1
    assert "for editors, not a rank" in done.out


async def test_ranks_of_this_folder_listen_elsewhere(
    doctor: Doctor, user: User, start_ranks: StartRanks, free_port: int, done: Path
) -> None:
    (rank,) = await start_ranks(1, COUNTING, wait=False, arguments=[str(done)], folder=user.folder)
    found = await doctor.only("wrong-port", f"127.0.0.1:{free_port}")
    assert any(f"port {rank.port}" in each for each in found["evidence"])
    assert f"127.0.0.1:{rank.port}" in found["fix"][0]


# Tunnels


async def test_a_tunnel_with_nothing_at_its_other_end(doctor: Doctor, free_port: int) -> None:
    port = proc_net.free_ports(1)
    async with tunnel((port, free_port)):
        found = await doctor.only("tunnel-down", f"127.0.0.1:{port}")
    assert "socat" in found["evidence"][0]


async def test_a_tunnel_that_has_ended(doctor: Doctor, user: User, running: Rank) -> None:
    port = proc_net.free_ports(1)
    async with tunnel((port, running.port)):
        attach = await user.start("attach", f"127.0.0.1:{port}")
        client = await joined(attach, attach=ATTACH)
        await listed(client, "state", "running")
        assert await doctor.causes() == []
    await listed(client, "state", "lost")
    found = await doctor.only("tunnel-down")
    assert found["ranks"] == "0"
    async with tunnel((port, running.port)):
        await listed(client, "state", "running")
        assert await doctor.causes() == []


async def test_half_of_a_range_is_forwarded(
    doctor: Doctor, start_ranks: StartRanks, done: Path, connect: Connect
) -> None:
    ranks = await start_ranks(2, COUNTING, wait=True, arguments=[str(done)])
    first = proc_net.free_ports(4)
    async with tunnel(*((first + n, rank.port) for n, rank in enumerate(ranks))):
        found = await doctor.only("port-range", f"127.0.0.1:{first}-{first + 3}")
    assert found["where"] == f"127.0.0.1:{first + 2}-{first + 3}"
    assert f"{first + 2}:{first + 2} {first + 3}:{first + 3}" in found["fix"][0]
    await attach_and_finish(connect, ranks, done)
