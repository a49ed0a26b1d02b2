"""What a running session says to an observer: its ranks, its breakpoints, what its ranks know."""

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
REQUEST_TIMEOUT_S: Final = 15.0  # s
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
        """The entries of the ranks that can be asked; workers have their ranks' files."""
        return [
            entry
            for entry in self.ranks
            if entry["state"] in ATTACHED and entry.get("worker") is None
        ]

    @property
    def default_group(self) -> str:
        """The group that plain numbers mean."""
        groups = {str(entry["group"]) for entry in self.ranks}
        return groups.pop() if len(groups) == 1 else DEFAULT_GROUP

    def named(self, entries: list[Json]) -> str:
        """A folded rank set."""
        return fold([id_of(entry) for entry in entries], self.default_group)

    async def ask(self, expression: str, ranks: str = "") -> dict[str, object]:
        """Evaluate an expression in these ranks, all attached ones for ""; values by folded set.

        It must not need a frame, for ranks that run have none. Who fails or is silent is left out.
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
    """A rank's value, from the text that stands for it: a text that cannot be read stays one."""
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


async def take_snapshot(session: SessionFile, client: DapClient) -> SessionSnapshot:
    """Look at a session."""
    snapshot = SessionSnapshot(session.address, session.pid, client)
    snapshot.ranks = (await client.request("list", timeout=REQUEST_TIMEOUT_S))["ranks"]
    snapshot.breakpoints = (await client.request("breakpoints", timeout=REQUEST_TIMEOUT_S))[
        "breakpoints"
    ]
    return snapshot


def id_of(entry: Json) -> RankId:
    """An entry's rank, `(group, number)`."""
    return (str(entry["group"]), int(entry["rank"]))
