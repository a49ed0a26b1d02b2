"""Who waits until everybody has left is told, however many wait."""

from __future__ import annotations

import asyncio

import pytest

from dap_mux.engine import Engine, outputs
from dap_mux.shell.driver import Driver
from tests.support.fake_rank.injected_calls import INJECTED

LIMIT = 30.0  # s; not a wait


class Guest:
    """A client's connection."""

    def send(self, bodies: list[bytes]) -> None:
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
