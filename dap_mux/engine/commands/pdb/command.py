"""One `cast` under way: its client, the ranks that it acts on, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from dap_mux.engine.evaluate.replies import Answers, ReplyCollector
from dap_mux.engine.injected_sources import call
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState

# What pdb's commands evaluate in a stopped rank: functions of `injected.pdb_views`.


class PdbExpressions:
    """One for each function; `source`: that of `injected.pdb_views`."""

    def __init__(self, source: str) -> None:
        self._source = source

    def arguments(self) -> str:
        """`a`."""
        return call(self._source, "arguments")

    def long_list(self, current: int) -> str:
        """`ll`; `current` is the line that the frame is at."""
        return call(self._source, "long_list", str(current))

    def list_lines(self, first: int, last: int, current: int) -> str:
        """`l`; `first` and `last` are clipped to the file."""
        return call(self._source, "list_lines", str(first), str(last), str(current))

    def line_text(self, line: int) -> str:
        """One line of the frame's file."""
        return call(self._source, "line_text", str(line))

    def lines_from(self, first: int) -> str:
        """The numbers of the lines of the frame's function, `first` and later."""
        return call(self._source, "lines_from", str(first))

    def of_value(self, command: str, expression: str) -> str:
        """`pp`, `source` and `whatis`."""
        return call(self._source, command, f"({expression}\n)")


RUNNING = "running"


class Invocation(NamedTuple):
    """One command for some ranks. `command` is its canonical name, '' for plain Python.

    `timeout` is in seconds; `then` is called once.
    """

    core: SessionState
    client: Client
    ranks: list[Rank]
    command: str
    argument: str
    timeout: float
    then: Callable[[Answers], None]

    def collector(self) -> ReplyCollector:
        """Wait for an answer of every rank."""
        ranks = (rank.rank_id for rank in self.ranks)
        return ReplyCollector(self.core, ranks, self.then, self.timeout)

    def stopped(self, collector: ReplyCollector) -> list[Rank]:
        """Return the ranks that stand still; the others fail, each with its state."""
        standing = [rank for rank in self.ranks if stands(rank)]
        for rank in self.ranks:
            if not stands(rank):
                collector.fail(rank.rank_id, problem_of(rank, self.command))
        return standing


Run: TypeAlias = "Callable[[Invocation], None]"


def stands(rank: Rank) -> bool:
    """Whether the rank is stopped, in a place that is known."""
    return rank.phase.live and rank.stop is not None and bool(rank.stop.frames)


def problem_of(rank: Rank, command: str) -> str:
    """Return why a command for stopped ranks does nothing in this one."""
    if not rank.phase.live:
        return f"{rank.state}: {rank.reason}" if rank.reason else f"is {rank.state}"
    if rank.stop is not None:
        return "its stack is not known: pause it again"
    return f"is {rank.state}: {command!r} needs a stopped rank"
