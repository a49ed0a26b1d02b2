"""What we rely on where a rank starts processes; held against real debugpy and our double of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.engine.ranks.patching import IS_TRACKER
from tests.support.fake_rank.children import START
from tests.support.fake_rank.rank_contract import INTRODUCTION, says_terminated_and_answers

Json = dict[str, Any]


@dataclass
class Family:
    """A rank that waits. Every connection goes to its port; `attach` says whom it is for.

    `rest`: seconds without a connection that its adapter needs between two clients.
    """

    connect: Callable[[], Awaitable[DapClient]]
    rest: float = 0.0

    async def parent(self) -> DapClient:
        """Attach to the rank, and let it run."""
        client = await self.connect()
        await client.handshake({"justMyCode": False, "subProcess": False})
        return client

    async def child(self, parent: DapClient) -> Json:
        """Have it start a process; return how that is announced."""
        started = await parent.request("evaluate", {"expression": START, "context": "watch"})
        announced = await parent.wait_event("debugpyAttach")
        assert str(announced["subProcessId"]) == started["result"]
        return announced

    async def attach(self, announced: Json) -> DapClient:
        """Attach to the process; it is not configured yet."""
        client = await self.connect()
        await client.request("initialize", INTRODUCTION)
        client.send("attach", announced)
        await client.wait_event("initialized")
        return client


async def a_child_is_announced_in_its_parents_words(family: Family) -> None:
    """Whatever `subProcess` says: with all that the parent was attached with."""
    announced = await family.child(await family.parent())
    assert announced["justMyCode"] is False
    assert announced["subProcess"] is False
    assert announced["request"] == "attach"
    assert set(announced["connect"]) == {"host", "port"}


async def a_child_is_attached_like_a_rank(family: Family) -> None:
    """It evaluates before it is configured, and says what it is."""
    client = await family.attach(await family.child(await family.parent()))
    asked = {"expression": IS_TRACKER, "context": "watch"}
    assert (await client.request("evaluate", asked))["result"] == "False"
    await client.request("configurationDone")
    assert (await client.wait_event("process"))["startMethod"] == "attach"
    await says_terminated_and_answers(client)


async def a_child_is_announced_again_to_the_next(family: Family) -> None:
    """To whoever attaches to its parent, as long as nobody debugs it."""
    parent = await family.parent()
    announced = await family.child(parent)
    await parent.disconnect()
    await asyncio.sleep(family.rest)
    again = await (await family.parent()).wait_event("debugpyAttach")
    assert again["subProcessId"] == announced["subProcessId"]


async def an_unknown_child_has_ended(family: Family) -> None:
    """`attach` is answered at once, as if all were well."""
    await family.parent()
    client = await family.connect()
    await client.request("initialize", INTRODUCTION)
    assert (await client.send("attach", {"subProcessId": 1, "justMyCode": False}))["success"]
    await client.wait_event("terminated")
    assert not any(event["event"] == "initialized" for event in client.events)


FamilyCheck = Callable[[Family], Awaitable[None]]
CHECKS: Final[list[FamilyCheck]] = [
    a_child_is_announced_in_its_parents_words,
    a_child_is_attached_like_a_rank,
    a_child_is_announced_again_to_the_next,
    an_unknown_child_has_ended,
]
every_family_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
