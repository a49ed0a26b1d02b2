"""The doctor as a user calls it, and what its answers must always be like."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.real.driving import COUNTING, StartRanks
from tests.real.ranks.agents import start
from tests.support.processes.commands import User, user
from tests.support.processes.ranks import Rank, debugpy_ranks

__all__ = ["start", "user"]
Json = dict[str, Any]
KEYS: Final = {"number", "cause", "summary", "ranks", "where", "evidence", "fix", "paste"}


@dataclass(frozen=True)
class Doctor:
    """`dap-mux doctor --json` of a user."""

    user: User

    async def causes(self, *words: str, cwd: Path | None = None) -> list[Json]:
        """What it finds; its exit code says the same."""
        done = await self.user.does("doctor", *words, "--json")
        assert done.err == ""
        told = json.loads(done.out)
        causes: list[Json] = told["causes"]
        assert done.code == (1 if causes else 0)
        assert told["healthy"] is not bool(causes)
        assert [one["number"] for one in causes] == [*range(1, len(causes) + 1)]
        assert all(set(one) == KEYS and one["evidence"] and one["fix"] for one in causes)
        return causes

    async def only(self, cause: str, *words: str) -> Json:
        """The one thing that it finds, which is this."""
        causes = await self.causes(*words)
        assert [one["cause"] for one in causes] == [cause], causes
        return causes[0]


@pytest.fixture
async def start_ranks() -> AsyncIterator[StartRanks]:
    """Not forked: the doctor tells by its command line what a silent rank is."""
    async with AsyncExitStack() as stack:

        async def started(*args: Any, **kwargs: Any) -> list[Rank]:
            ranks = debugpy_ranks(*args, **kwargs, forked=False)
            return await stack.enter_async_context(ranks)

        yield started


@pytest.fixture
def doctor(user: User) -> Doctor:
    return Doctor(user)


def endpoint(rank: Rank) -> str:
    """Where a rank listens."""
    return f"127.0.0.1:{rank.port}"


@pytest.fixture
async def running(start_ranks: StartRanks, done: Path) -> Rank:
    (rank,) = await start_ranks(1, COUNTING, wait=False, arguments=[str(done)])
    return rank
