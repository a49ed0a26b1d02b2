"""One `cast` on its way: who asked, which ranks it acts on, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dap_mux.engine.evaluate.fan_out import Answers, Gathering
from dap_mux.engine.state.model import Client, Rank
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.session import Core

RUNNING = "running"


@dataclass(frozen=True)
class Order:
    """`word`: canonical, '' for plain Python. `timeout` in seconds. `then`: told once."""

    core: Core
    client: Client
    ranks: list[Rank]
    word: str
    argument: str
    timeout: float
    then: Callable[[Answers], None]

    def gathering(self) -> Gathering:
        """Wait for an answer of every rank; `Gathering.end` where there are no ranks at all."""
        gathering = Gathering(
            self.core, (rank.rank_id for rank in self.ranks), self.then, self.timeout
        )
        if not self.ranks:
            gathering.end()
        return gathering

    def stopped(self, gathering: Gathering) -> list[Rank]:
        """Return the ranks that stand still; the others fail, each with its state."""
        standing = [rank for rank in self.ranks if stands(rank)]
        for rank in self.ranks:
            if not stands(rank):
                gathering.fail(rank.rank_id, problem_of(rank, self.word))
        return standing


Word: TypeAlias = "Callable[[Order], None]"


def stands(rank: Rank) -> bool:
    """Whether the rank is stopped, in a place that is known."""
    return rank.phase is Phase.LIVE and rank.stop is not None and bool(rank.stop.frames)


def problem_of(rank: Rank, word: str) -> str:
    """Return why a word for stopped ranks does nothing in this one."""
    if rank.phase is not Phase.LIVE:
        return f"{rank.state}: {rank.reason}" if rank.reason else f"is {rank.state}"
    if rank.stop is not None:
        return "its stack is not known: pause it again"
    return f"is {rank.state}: {word!r} needs a stopped rank"
