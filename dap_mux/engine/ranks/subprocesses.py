"""Processes that a rank has started: debugged as its workers, or told to run on.

A child that pydevd has patched waits until a client attaches to it, so every announcement is
answered by one more connection to its rank's port. Until it is known whether the child shall be
debugged it is hidden: it has no row and no number, and clients are told nothing of it. It is
attached in either case, because it runs on only after `configurationDone` (measured).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from dap_mux.engine.ranks.patching import AttachRequest
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.debuggees import WorkerId

# Events of a hidden child that are heard; it is not debugged, so the rest is of no interest.
HEARD = frozenset({"initialized", "terminated", "debugpyAttach", "dapMuxMark"})
MAX_CHILDREN = 1024  # of one rank at once: its word alone has us open no more connections


class Subprocesses(Struct, eq=False):
    """The children that ranks have announced, and their numbers as workers."""

    _core: SessionState
    _request: AttachRequest
    _children: dict[tuple[RankId, int], Rank] = {}

    def __iter__(self) -> Iterator[Rank]:
        return iter(self._children.values())

    def being_left(self, main: Rank) -> bool:
        """Whether workers of a rank are still being left."""
        return any(
            child.main is main and child.phase.leaving and not child.hidden
            for child in self._children.values()
        )

    def announced(self, parent: Rank, body: Body) -> Rank:
        """Return the child that a rank, or a child of it, says is waiting (`debugpyAttach`)."""
        main, pid = parent.main or parent, body["subProcessId"]
        child = self._children.get((main.rank_id, pid)) or self._met(main, pid)
        child.attach_overrides = body
        child.endpoint = replace(main.endpoint, pid=pid, announces=False, ready=True)
        return child

    def _met(self, main: Rank, pid: int) -> Rank:
        if sum(rank == main.rank_id for rank, _ in self._children) >= MAX_CHILDREN:
            raise PeerFault(f"more than {MAX_CHILDREN} children at once")
        unnumbered: WorkerId = (*main.rank_id, 0)
        child = Rank(unnumbered, main.endpoint, main=main, hidden=True)
        self._children[main.rank_id, pid] = child
        return child

    def is_wanted(self, child: Rank) -> bool:
        """Whether a child is to be debugged, or only to run on."""
        main = child.main
        here = main is not None and main.phase.linked and not main.phase.leaving
        return self._request.wanted and self._request.debugs_children and here

    def adopt(self, child: Rank) -> None:
        """From now on it is a worker; the first free number is its own as long as it lives."""
        main, pid = child.main, child.endpoint.pid
        assert main is not None
        assert pid is not None
        taken = set(main.numbers.values())
        number = main.numbers.setdefault(pid, next(n for n in count(1) if n not in taken))
        child.id = (*main.rank_id, number)
        self._forget_numbers(main)
        child.hidden = False
        self._core.add(child)

    def _forget_numbers(self, main: Rank) -> None:
        """Of children that run on without us only the latest are known again by their numbers."""
        gone = [pid for pid in main.numbers if (main.rank_id, pid) not in self._children]
        for pid in gone[: max(0, len(main.numbers) - MAX_CHILDREN)]:
            del main.numbers[pid]

    def forget(self, child: Rank) -> None:
        """It has ended, or runs on without us: then it comes back under its number."""
        if child.main and child.endpoint.pid is not None:
            self._children.pop((child.main.rank_id, child.endpoint.pid), None)
            if child.phase is Phase.GONE and child.main.link is not None:
                child.main.numbers.pop(child.endpoint.pid, None)
