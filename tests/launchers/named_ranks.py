"""Ranks of a session by their names (`Rollout:1`), and where they stand."""

from __future__ import annotations

from typing import Final

from dap_mux.client import DapClient
from tests.launchers.launching import STARTS, seen
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

    def stand(found: dict[str, Json]) -> bool:
        return all(name in found and found[name]["line"] == at for name in names)

    return await seen(lambda: ranks(client), stand, within=within)


async def being(
    client: DapClient, name: str, *, not_pid: int | None = None, **wanted: object
) -> Json:
    """Wait until the rank of this name has these values, and is of another process; return it."""

    def is_so(found: dict[str, Json]) -> bool:
        each = found.get(name, {"pid": not_pid})
        return each["pid"] != not_pid and wanted.items() <= each.items()

    return (await seen(lambda: ranks(client), is_so))[name]


async def first_stop(client: DapClient, at: int, *names: str) -> dict[str, Json]:
    """Wait until these ranks are there, and then until they stand at this line, as promised."""

    def there(found: dict[str, Json]) -> bool:
        return all(name in found and found[name]["state"] not in AWAY for name in names)

    await seen(lambda: ranks(client), there)
    return await standing(client, at, *names, within=FIRST_STOP)
