"""Rows of the fault table: links whose other end is gone without a word.

The limits are shorter than in life; `tests/unit/shell/test_liveness.py` checks the real ones.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.engine import inputs
from dap_mux.engine.state.phases import Phase
from dap_mux.pure.endpoint import Endpoint
from dap_mux.shell import sockets
from tests.real.driving import COUNT, COUNTING, Driver, StartRanks, ends_well
from tests.real.faults.test_ranks_come_and_go import steps_on
from tests.support.hosts.private_network import PrivateNetwork, possible, private_network
from tests.support.processes import proc_net
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import Session, session

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not possible(), reason="only root may have a network of its own"),
]
FAR: Final = "127.0.0.9"  # the address that packets are lost of
LIMIT: Final = 30.0


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateNetwork]:
    # So many probes that the kernel's own end, which says less, never comes before ours.
    quick = ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 60))
    monkeypatch.setattr(sockets, "_KEEPALIVE", quick)
    monkeypatch.setattr(sockets, "CHECK_INTERVAL_S", 0.2)
    monkeypatch.setattr(sockets, "ACK_TIMEOUT_S", 2.0)
    with private_network() as ours:
        yield ours


async def three_near_one_far(start_ranks: StartRanks, running: Session, done: Path) -> list[Rank]:
    """Four ranks; rank 3 is at FAR."""
    ranks = await start_ranks(3, COUNTING, arguments=[str(done)])
    ranks += await start_ranks(1, COUNTING, arguments=[str(done)], env={"DEBUGPY_HOST": FAR})
    running.known([rank.port for rank in ranks[:3]])
    far = Endpoint(FAR, ranks[3].port, ready=True)
    running.driver.feed(inputs.RankKnown(("job", 3), far))
    return ranks


def asks_no_more(running: Session) -> bool:
    """True once every rank has told what its file is, the last thing that it is asked by itself."""
    ranks = running.engine.core.sorted_ranks()
    looks = sum(b"def digest(path" in body for body in running.engine.told)
    return looks == len(ranks) and not any(rank.connection.pending for rank in ranks)


def reasons(running: Session) -> list[str]:
    """Whatever `list` would give as rank 3's reason, also what stands there for a moment only."""
    given: list[str] = []
    core = running.engine.core

    def note(*_: object) -> None:
        (rank,) = (rank for rank in core.sorted_ranks() if rank.number == 3)
        if rank.state == "lost":
            given.append(rank.reason)

    running.engine.observers.append(note)
    return given


async def test_half_open(network: PrivateNetwork, start_ranks: StartRanks, done: Path) -> None:
    """Lost, and why. Debugpy holds the rank stopped until it notices too, then lets it run on.

    Then it is back, with its breakpoints. The others step all the while. So it is while it runs,
    and is told something: nobody acknowledges the request, and keepalive is silent then.
    """
    async with session() as running:
        ranks = await three_near_one_far(start_ranks, running, done)
        driver = await Driver.attach(running, breakpoints={COUNTING: [COUNT]})
        await driver.stopped(COUNT, within=LIMIT)
        why = reasons(running)
        await until(partial(asks_no_more, running), within=LIMIT, what="no rank is asked any more")
        # An adapter that had sent something would do so again, each time after twice as long.
        at_rest = partial(proc_net.at_rest, ranks[3].port)
        await until(at_rest, within=LIMIT, what="nothing is on its way")
        network.lose(FAR)
        await driver.states("stopped", "stopped", "stopped", "lost", within=LIMIT)
        assert "acknowledged" in why[0]
        await steps_on(driver, 0, [0, 1, 2])
        network.find(FAR)
        await driver.until(lambda entries: entries[3]["line"] == COUNT, within=60, what="back")
        assert int(await driver.value(3, "count")) >= 1

        await driver.client.request("setBreakpoints", {"source": {"path": COUNTING}})
        await driver.go_on()
        await driver.states(*["running"] * 4, within=LIMIT)
        why = reasons(running)
        network.lose(FAR)
        await driver.control("pause")
        await driver.states("stopped", "stopped", "stopped", "lost", within=LIMIT)
        assert "acknowledged" in why[0]
        network.find(FAR)
        await driver.control("continue")
        await driver.states(*["running"] * 4, within=60)
        await driver.control("pause", 3)
        await driver.states(*["stopped"] * 4)
        await driver.ends_well(ranks, done)


async def test_the_last_client_is_gone_without_a_word(
    network: PrivateNetwork, start_ranks: StartRanks, done: Path
) -> None:
    """Nobody is left to continue them: every rank runs on, and the next client is served."""
    ranks = await start_ranks(4, COUNTING, arguments=[str(done)])
    async with session([rank.port for rank in ranks]) as running:
        streams = await asyncio.open_connection("127.0.0.1", running.port, local_addr=(FAR, 0))
        client = DapClient(*streams)
        await client.handshake({}, breakpoints={COUNTING: [COUNT]}, timeout=LIMIT)
        await client.wait_event("stopped", timeout=LIMIT)
        network.lose(FAR)
        core = running.engine.core
        left = [Phase.IDLE] * 4
        await until(
            lambda: [rank.phase for rank in core.sorted_ranks()] == left,
            within=LIMIT,
            what="every rank is left",
        )
        assert not core.clients
        network.find(FAR)
        again = await Driver.attach(running, breakpoints={COUNTING: [COUNT]})
        await again.stopped(COUNT, within=LIMIT)
        await again.leave()
        await client.close()
        await ends_well(ranks, done)
