"""A peer that acknowledges nothing is gone; one that does not read, or says nothing, is not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

from dap_mux.engine.ranks import handshake
from dap_mux.rank import in_process
from dap_mux.rank.in_process import keep_alive
from dap_mux.shell import sockets
from dap_mux.shell.sockets import LivenessMonitor, unacknowledged_for
from dap_mux.shell.timers import Timers
from dap_mux.system.config.options import BY_NAME
from tests.support.hosts.private_network import PrivateNetwork, possible, private_network
from tests.support.processes.waiting import until

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="needs Linux's TCP_INFO")
THERE = "127.0.0.9"
LIMIT = 30.0  # s; not a wait
Ends = tuple[socket.socket, socket.socket]
half_open = pytest.mark.skipif(not possible(), reason="only root may have a network of its own")


@pytest.fixture
def network() -> Iterator[PrivateNetwork]:
    with private_network() as ours:
        yield ours


def connected() -> Ends:
    """Our end, and that of a peer at THERE."""
    with socket.create_server((THERE, 0)) as server:
        here = socket.create_connection(server.getsockname(), timeout=LIMIT)
        there, _ = server.accept()
    for sock in (here, there):
        sock.setblocking(False)
    return here, there


@pytest.fixture
def ends() -> Iterator[Ends]:
    here, there = connected()
    yield here, there
    here.close()
    there.close()


def fill(sock: socket.socket) -> None:
    """Write until the peer's window is closed and our buffer full."""
    with contextlib.suppress(BlockingIOError):
        while sock.send(bytes(1 << 16)):
            pass


def test_the_limits_keep_the_promise() -> None:
    """A dead peer: within 15 s, on idle connections (keepalive) and on busy ones."""
    option = dict(sockets._KEEPALIVE)
    probes = option[socket.TCP_KEEPINTVL] * option[socket.TCP_KEEPCNT]
    idle = option[socket.TCP_KEEPIDLE] + probes
    assert idle <= 14
    assert sockets.ACK_TIMEOUT_S + 2 * sockets.CHECK_INTERVAL_S <= 15  # it is seen at two looks


def test_a_rank_notices_a_session_that_is_gone_without_a_word() -> None:
    """Its connection is idle while it stands at a breakpoint: within 14 s."""
    with socket.socket() as sock:
        keep_alive(sock)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count = (
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
    assert idle + interval * count <= 14


def test_a_rank_notices_a_session_that_says_nothing() -> None:
    """The session says so often enough, and the rank looks often enough."""
    allowed = BY_NAME["release_after"].default
    assert isinstance(allowed, float)
    assert allowed + in_process.CHECK_INTERVAL_S <= 15
    assert handshake.BEATS >= 3


async def test_who_does_not_read_is_alive(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """What TCP_USER_TIMEOUT does not know."""
    monkeypatch.setattr(sockets, "CHECK_INTERVAL_S", 0.05)
    monkeypatch.setattr(sockets, "ACK_TIMEOUT_S", 0.3)
    fill(ends[0])
    complaints: list[str] = []
    pulse = LivenessMonitor(ends[0], complaints.append, Timers())
    loop = asyncio.get_running_loop()
    since = loop.time()
    await until(lambda: loop.time() > since + 1.5, within=LIMIT, what="five times the patience")
    assert not complaints
    pulse.stop()


async def test_what_was_sent_just_now_is_not_late(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two looks in a row find something owed, without any acknowledgement between them."""
    found = iter((60.0, 0.0, 60.0, 0.0, 60.0, 64.0))
    monkeypatch.setattr(sockets, "CHECK_INTERVAL_S", 0.0)
    monkeypatch.setattr(sockets, "unacknowledged_for", lambda sock: next(found))
    complaints: list[str] = []
    LivenessMonitor(ends[0], complaints.append, Timers())
    await until(lambda: complaints, within=LIMIT, what="a complaint")
    assert complaints == ["the peer has not acknowledged anything for 64 s"]


@half_open
async def test_who_acknowledges_nothing_is_gone(
    network: PrivateNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "CHECK_INTERVAL_S", 0.05)
    monkeypatch.setattr(sockets, "ACK_TIMEOUT_S", 0.5)
    here, there = connected()
    complaints: list[str] = []
    LivenessMonitor(here, complaints.append, Timers())
    here.send(b"heard")
    await until(lambda: unacknowledged_for(here) == 0, within=LIMIT, what="acknowledged")
    network.lose(THERE)
    here.send(b"lost")
    await until(lambda: bool(complaints), within=LIMIT, what="a complaint")
    assert "the peer has not acknowledged anything for" in complaints[0]
    here.close()
    there.close()


@half_open
@pytest.mark.timeout(120)
async def test_who_did_not_read_and_is_gone_is_gone(network: PrivateNetwork) -> None:
    """Its window was closed: the probes for that are not answered any more.

    Each comes twice as late as the one before, so the longer `lose` takes, the longer the second.
    """
    here, there = connected()
    fill(here)
    await until(lambda: unacknowledged_for(here) == 0, within=LIMIT, what="all is acknowledged")
    network.lose(THERE)
    await until(lambda: unacknowledged_for(here) > 1, within=2 * LIMIT, what="noticed")
    here.close()
    there.close()


async def test_a_closed_socket_is_no_complaint(ends: Ends) -> None:
    ends[0].close()
    assert unacknowledged_for(ends[0]) == 0
