"""Who waits until everybody has left is told, however many wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from dap_mux.engine import Engine, outputs
from dap_mux.shell import driver as driver_module
from dap_mux.shell.driver import Driver
from tests.support.fake_rank.injected_calls import INJECTED
from tests.support.processes.waiting import until

LIMIT = 30.0  # s; not a wait


class Guest:
    """A client's connection."""

    def send(self, frames: bytes) -> None:
        """Take messages."""

    def admitted(self) -> None:
        """Have shown the token."""

    def close(self) -> None:
        """Be closed."""

    def is_near(self) -> bool:
        return True


@pytest.mark.parametrize("clients", [1, 2])
async def test_two_wait_for_the_clients_to_leave(clients: int) -> None:
    """As an adapter whose editor has gone does, and a job that has ended meanwhile."""
    driver = Driver(Engine(INJECTED))
    numbers = [driver.client_connected(Guest()) for _ in range(clients)]
    waiting = [asyncio.create_task(driver.no_clients()) for _ in "ab"]
    await asyncio.sleep(0)
    for number in numbers:
        assert not any(task.done() for task in waiting)
        driver.client_gone(number)
        await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*waiting), LIMIT)
    await driver.close()


async def test_a_connection_that_is_refused_is_waited_for_no_longer(free_port: int) -> None:
    """Also where nothing happens after it."""
    driver = Driver(Engine(INJECTED))
    driver._connect(outputs.Connect(1, ("job", 0), "127.0.0.1", free_port))
    await asyncio.wait_for(driver.no_links(), LIMIT)
    await driver.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose listener takes no more connections, and says nothing of it."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        taken = [socket.socket() for _ in range(4)]
        for one in taken:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in taken:
            one.close()


async def test_few_are_connected_at_once_and_a_silent_one_keeps_nobody_waiting(
    silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "AT_ONCE", 1)
    monkeypatch.setattr(driver_module, "PACE_S", 0.05)
    met: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: met.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    driver = Driver(Engine(INJECTED))
    for link, where in enumerate([silent_port, silent_port, port], 1):
        driver._connect(outputs.Connect(link, ("job", link), "127.0.0.1", where))
    assert list(driver._connecting) == [1]
    await until(lambda: met, within=LIMIT, what="the last one's connection")
    assert {1, 2} <= driver._connecting.keys()
    await driver.close()
    for writer in met:
        writer.close()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("at_once", [1, 0], ids=["being made", "not begun"])
async def test_a_connection_that_is_given_up_is_never_made(
    silent_port: int, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(driver_module, "AT_ONCE", at_once)
    driver = Driver(Engine(INJECTED))
    driver._connect(outputs.Connect(1, ("job", 0), "127.0.0.1", silent_port))
    driver._close_link(outputs.CloseLink(1))
    await asyncio.wait_for(driver.no_links(), LIMIT)
    await driver.close()


async def test_a_connection_that_nobody_knows_any_longer_is_closed() -> None:
    """As one that is up at the moment in which its rank is given up."""
    driver = Driver(Engine(INJECTED))
    closed = asyncio.Event()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        closed.set()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    driver._connect(outputs.Connect(1, ("job", 0), host, port))  # of no rank
    await asyncio.wait_for(closed.wait(), LIMIT)
    await asyncio.wait_for(driver.no_links(), LIMIT)
    await driver.close()
    server.close()
    await server.wait_closed()
