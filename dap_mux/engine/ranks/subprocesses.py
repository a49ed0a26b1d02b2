"""Processes that a rank has started: debugged as its workers, or told to run on.

A child that pydevd has patched waits until somebody attaches to it (K5), so every announcement is
answered by one more connection to its rank's port. Until it is known whether the child shall be
debugged it is hidden: it has no row and no number, and nobody hears of it. It is attached in either
case, for it runs on only after `configurationDone` (measured).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TypeGuard

from dap_mux.engine.ranks.attach_expression import YES
from dap_mux.engine.ranks.connector import Watcher
from dap_mux.engine.ranks.handshake import Handshake
from dap_mux.engine.state.model import Body, Rank, Reply
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.session import Core
from dap_mux.errors import PeerFault
from dap_mux.protocol.messages import plain
from dap_mux.rank_sets import RankId
from dap_mux.rank_sets.debuggees import WorkerId

# What is heard of a hidden child; the rest is about a process that nobody debugs.
HEARD = frozenset({"initialized", "terminated", "debugpyAttach"})
LEFT = frozenset({Phase.IDLE, Phase.RELEASED})
MOST = 1024  # children of one rank at once: its word alone has us open no more connections


def is_child(body: object) -> TypeGuard[Body]:
    """Whether this announces a process."""
    return isinstance(body, dict) and type(body.get("subProcessId")) is int


class Children(Handshake):
    """How children are met, kept and left."""

    def __init__(self, core: Core, watcher: Watcher) -> None:
        super().__init__(core, watcher)
        self._children: dict[tuple[RankId, int], Rank] = {}

    def connect(self, rank: Rank) -> None:
        """Open its connection (`Links`); one that was left waits until its workers are, too.

        Its adapter tells whoever attaches of the processes that nobody debugs then, and only once.
        """
        if rank.phase not in LEFT or not self._being_left(rank):
            super().connect(rank)

    def _being_left(self, main: Rank) -> bool:
        """Whether workers of a rank are still being left."""
        return any(
            child.main is main and child.phase is Phase.LEAVING and not child.hidden
            for child in self._children.values()
        )

    def announced(self, parent: Rank, body: Body) -> None:
        """A rank, or a child of it, says that a process of its own waits (`debugpyAttach`)."""
        if not is_child(body):
            raise PeerFault(f"no subProcessId in {body!r:.80}")
        main, pid = parent.main or parent, body["subProcessId"]
        child = self._children.get((main.rank_id, pid))
        if child is None:
            if sum(rank == main.rank_id for rank, _ in self._children) >= MOST:
                raise PeerFault(f"more than {MOST} children at once")
            child = self._met(main, pid)
        child.called = body
        child.endpoint = replace(main.endpoint, pid=pid, announces=False, ready=True)
        if child.phase in (Phase.IDLE, Phase.WAITING):
            self.connect(child)

    def _met(self, main: Rank, pid: int) -> Rank:
        nobody: WorkerId = (*main.rank_id, 0)
        child = Rank(nobody, main.endpoint, main=main, hidden=True, dropping=True)
        self._children[main.rank_id, pid] = child
        return child

    def _examined(self, child: Rank, reply: Reply) -> None:
        """A child says what it is, and waits for us to let it run."""
        if child.phase is not Phase.CONFIGURING:
            return
        is_tracker = reply.ok and plain(reply.body).get("result") == YES
        if not child.hidden or (self._is_wanted(child) and not is_tracker):
            self._adopt(child)
            self._configure(child)
        else:
            self._start(child)

    def _is_wanted(self, child: Rank) -> bool:
        main = child.main
        here = main is not None and main.phase.linked and main.phase is not Phase.LEAVING
        return self.wanted and self.debugs_children and here

    def _adopt(self, child: Rank) -> None:
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
        self._watcher.moved(child)

    def _forget_numbers(self, main: Rank) -> None:
        """Of children that run on without us only the latest are known again by their numbers."""
        gone = [pid for pid in main.numbers if (main.rank_id, pid) not in self._children]
        for pid in gone[: max(0, len(main.numbers) - MOST)]:
            del main.numbers[pid]

    def _is_live(self, rank: Rank) -> None:
        """A child that nobody debugs has been let go, and is left as politely as any other."""
        if rank.hidden:
            self.leave(rank, release=False)
        else:
            super()._is_live(rank)

    def _remove(self, rank: Rank) -> None:
        super()._remove(rank)
        self._forget_child(rank)
        if rank.main and rank.main.phase in LEFT and not rank.main.resting:
            self._rest(rank.main)  # it may be wanted again, and has waited for this

    def _forget_child(self, child: Rank) -> None:
        """It has ended, or runs on without us: then it comes back under its number."""
        if child.main and child.endpoint.pid is not None:
            self._children.pop((child.main.rank_id, child.endpoint.pid), None)
            if child.phase is Phase.GONE and child.main.link is not None:
                child.main.numbers.pop(child.endpoint.pid, None)

    def _leave_workers(self, main: Rank) -> None:
        """The rank is left, or has ended: its workers run on without us."""
        for worker in self._core.workers_of(main):
            self.leave(worker, release=True)

    def leave(self, rank: Rank, *, release: bool) -> None:
        """Detach (`Lifecycle`)."""
        raise NotImplementedError
