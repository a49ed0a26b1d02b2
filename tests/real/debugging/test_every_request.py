"""Every request, right and wrong, to four real ranks: one answer each, and all ranks stay.

`tests/engine/test_every_request.py` tries the same in every phase, on scripted ranks; here it is
debugpy that must take what is passed on.
"""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from dap_mux.engine.routes import ROUTES
from tests.real.driving import COUNT, COUNTING, Driver, driving
from tests.support.clients.argument_cases import Ids, cases, right
from tests.support.clients.raw_client import Json, RawClient
from tests.support.processes.ranks import debugpy_ranks
from tests.support.session import Session

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.heavy]
RIGHT: Final = right(COUNTING)
RUNS_ON: Final = frozenset({"continue", "next", "stepIn", "stepOut", "goto", "pause"})
LIMIT: Final = 30.0  # s; not a wait


class Knocker:
    """A client that asks for everything, and joins again where that ends its session."""

    def __init__(self, driver: Driver) -> None:
        self._session: Session = driver.session
        self._driver = driver
        self._client: RawClient | None = None
        self._ids = Ids()

    async def knock(self, command: str, arguments: object) -> None:
        """Ask once, and see that it is answered once."""
        client = await self._joined()
        seq = client.send(command, arguments)
        response = await client.answer(seq, within=LIMIT)
        assert response is not None, (command, arguments)
        assert client.answers[seq] == 1, (command, arguments)
        if response["success"] and command in RUNS_ON:
            await self._look(client)
        if response["success"] and command == "disconnect":
            await client.answer(seq, within=LIMIT)  # until it is hung up
            assert not client.open
            self.close()
            self._client = None

    async def arguments(self, command: str) -> Json:
        """Right arguments, with ids as they are now."""
        await self._joined()
        return RIGHT[command](self._ids) if command in RIGHT else {"threadId": self._ids.thread}

    def close(self) -> None:
        """Hang up."""
        if self._client:
            self._client.close()

    async def _joined(self) -> RawClient:
        if self._client is None:
            self._client = client = await RawClient.connect(self._session.port)
            await client.ask("initialize", {"adapterID": "debugpy"}, within=LIMIT)
            attach = client.send("attach", {"justMyCode": False})
            await client.ask("configurationDone", within=LIMIT)
            assert await client.answer(attach, within=LIMIT)
            await self._look(client)
        return self._client

    async def _look(self, client: RawClient) -> None:
        """Learn ids of the first rank's stop; what runs on meanwhile stops again."""
        with anyio.fail_after(LIMIT):
            while (ids := await self._seen(client)) is None:
                await self._driver.until(all_stopped)
        self._ids = ids

    async def _seen(self, client: RawClient) -> Ids | None:
        thread = self._driver.row(0)
        at = {"path": COUNTING}
        stack = await body(client, "stackTrace", threadId=thread)
        frame = stack["stackFrames"][0]["id"] if stack else 0
        scopes = await body(client, "scopes", frameId=frame)
        targets = await body(client, "gotoTargets", source=at, line=COUNT)
        if not scopes or not targets:
            return None
        variables, target = scopes["scopes"][0]["variablesReference"], targets["targets"][0]["id"]
        return Ids(thread, frame, variables, target)


def all_stopped(ranks: list[Json]) -> bool:
    return all(one["state"] == "stopped" for one in ranks)


async def body(client: RawClient, command: str, **arguments: object) -> Json:
    """Ask; {} where that is refused."""
    response = await client.ask(command, arguments, within=LIMIT)
    assert response is not None
    return response["body"] if response["success"] else {}


@pytest.mark.timeout(300)
async def test_every_request() -> None:
    async with (
        debugpy_ranks(4, COUNTING, arguments=["/nowhere/done"]) as ranks,
        driving(ranks, {COUNTING: [COUNT]}, stopped=COUNT) as driver,
    ):
        before = {rank.number: rank.link for rank in driver.session.engine.core.ranks.values()}
        knocker = Knocker(driver)
        for command in ROUTES:
            for arguments in cases(await knocker.arguments(command)):
                await knocker.knock(command, arguments)
        await driver.states(*["stopped"] * 4)
        assert {
            rank.number: rank.link for rank in driver.session.engine.core.ranks.values()
        } == before
        for rank in range(4):
            assert int(await driver.value(rank, "count")) >= 0
        assert not driver.session.engine.core.faults
        assert all(rank.running for rank in ranks)
        knocker.close()
