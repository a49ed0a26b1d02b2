"""Ranks of a session by their names (`Rollout:1`), and where they stand."""

from __future__ import annotations

import asyncio
from typing import Final

from dap_mux.client import DapClient
from tests.launchers.launching import STARTS
from tests.support.processes.commands import LIMIT, Json

FIRST_STOP: Final = 15.0  # s; promised, from the ranks being there on
AWAY: Final = ("waiting", "connecting")


async def ranks(client: DapClient) -> dict[str, Json]:
    """The ranks, by group and number."""
    entries: list[Json] = (await client.request("list", timeout=LIMIT))["ranks"]
    return {f"{each['group']}:{each['rank']}": each for each in entries}


async def standing(
    client: DapClient, at: int | None, *names: str, within: float = STARTS
) -> dict[str, Json]:
    """Wait until the ranks of these names stand at this line."""
    end = asyncio.get_running_loop().time() + within
    while True:
        found = await ranks(client)
        if all(name in found and found[name]["line"] == at for name in names):
            return found
        shown = {name: (each["state"], each["line"]) for name, each in found.items()}
        assert asyncio.get_running_loop().time() < end, shown
        await asyncio.sleep(0.05)


async def first_stop(client: DapClient, at: int, *names: str) -> dict[str, Json]:
    """Wait until these ranks are there, and then until they stand at this line, as promised."""
    end = asyncio.get_running_loop().time() + STARTS
    while True:
        found = await ranks(client)
        if all(name in found and found[name]["state"] not in AWAY for name in names):
            return await standing(client, at, *names, within=FIRST_STOP)
        assert asyncio.get_running_loop().time() < end, found
        await asyncio.sleep(0.05)
