"""A snapshot of a running session: its ranks, its breakpoints, and values from its ranks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dap_mux.client import DapClient
from dap_mux.cluster.records import DEFAULT_GROUP
from dap_mux.rank_sets import RankId, fold
from dap_mux.session_files import SessionFile

Json: TypeAlias = dict[str, Any]
Join: TypeAlias = Callable[[SessionFile], AbstractAsyncContextManager[DapClient]]
REQUEST_TIMEOUT_S: Final = 15.0
ATTACHED: Final = ("running", "stopped", "pausing")


@dataclass
class SessionSnapshot:
    """A session. `ranks` and `breakpoints` are the entries of `list` and `breakpoints`."""

    address: str
    pid: int
    client: DapClient
    ranks: list[Json] = field(default_factory=list)
    breakpoints: list[Json] = field(default_factory=list)

    @property
    def attached(self) -> list[Json]:
        """The entries of the ranks that can evaluate; workers are left out."""
        return [
            entry
            for entry in self.ranks
            if entry["state"] in ATTACHED and entry.get("worker") is None
        ]

    @property
    def default_group(self) -> str:
        """The group of plain rank numbers."""
        groups = {str(entry["group"]) for entry in self.ranks}
        return groups.pop() if len(groups) == 1 else DEFAULT_GROUP

    def named(self, entries: list[Json]) -> str:
        """Return the ranks as a folded set."""
        return fold([id_of(entry) for entry in entries], self.default_group)

    async def ask(self, expression: str, ranks: str = "") -> dict[str, object]:
        """Evaluate an expression in these ranks ("": all attached ones); values by folded set.

        It must not need a frame: running ranks have none. Ranks that fail are left out.
        """
        attached = self.attached
        if not attached:
            return {}
        asked = {
            "ranks": ranks or self.named(attached),
            "command": f"p {expression}",
            "timeout": 5.0,
        }
        body = await self.client.request("cast", asked, timeout=REQUEST_TIMEOUT_S)
        return {one["ranks"]: read(one["value"]) for one in body["results"]}


def read(value: str) -> object:
    """Parse a rank's value from its repr; other text is returned as it is."""
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


async def take_snapshot(session: SessionFile, client: DapClient) -> SessionSnapshot:
    """Take a snapshot of a session."""
    snapshot = SessionSnapshot(session.address, session.pid, client)
    snapshot.ranks = (await client.request("list", timeout=REQUEST_TIMEOUT_S))["ranks"]
    snapshot.breakpoints = (await client.request("breakpoints", timeout=REQUEST_TIMEOUT_S))[
        "breakpoints"
    ]
    return snapshot


def id_of(entry: Json) -> RankId:
    """Return an entry's rank, `(group, number)`."""
    return (str(entry["group"]), int(entry["rank"]))
