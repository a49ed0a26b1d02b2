"""Deaths of ranks, each reported once with the newest place known; processes that ranks start."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dap_mux.engine.messages.to_clients import notice
from dap_mux.engine.outputs import Tell
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import base_name
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import exception_name
from dap_mux.pure.rank_sets import RankId, name_ranks
from dap_mux.pure.rank_sets.world import WorkerId

COALESCE_WINDOW_S: Final = 0.2  # ranks that die alike within it share a line
UNSEEN_END: Final = "ended for an unknown reason"


# An end in peace (exit code 0, or a program that is over and whose code is unknown) is no death,
# nor is an end that the session itself has brought about.
class Deaths(Struct, eq=False):
    """The engine's part that tells of ranks that have died."""

    _core: SessionState
    _untold: dict[str, list[RankId]] = {}
    _timer: int | None = None

    def consider(self, rank: Rank) -> None:
        """The rank has ended, or more is known of how."""
        flow, fate = self._core.flow, rank.fate
        if rank.phase is not Phase.GONE or rank.main or fate.told or fate.wanted:
            return
        text = "" if flow.ended or flow.restarting else _text_of(rank)
        # A session over one rank is as plain as debugpy: the traceback has said this.
        if text and not (self._core.single and fate.failure):
            fate.told = True
            self._untold.setdefault(text, []).append(rank.rank_id)
            if self._timer is None:
                self._timer = self._core.after(COALESCE_WINDOW_S, self.flush)

    def flush(self) -> None:
        """Tell at once what is still to be told."""
        self._core.cancel(self._timer)
        self._timer = None
        untold, self._untold = self._untold, {}
        for text, ranks in untold.items():
            if self._core.flow.job_code == 0 and text.startswith(UNSEEN_END):
                continue  # the job has ended well: that is the reason
            who = name_ranks(ranks, self._core.default_group())
            self._core.out.append(Tell(f"{who} {text}"))
            notice(self._core, f"{who} {text}")


def _text_of(rank: Rank) -> str:
    """Return what has become of a rank, without its number; "" for an end in peace."""
    fate, code = rank.fate, rank.exit_code
    if code == 0 or (code is None and rank.endpoint.watched and not fate.exited):
        return ""  # or its launcher is about to say how
    if fate.failure:
        return f"failed: {fate.failure}{f', {fate.end}' if fate.end else ''}"
    if not fate.end and not fate.vanished:
        return ""
    place = f"; last stopped at {fate.place}" if fate.place else ""
    return f"died: {fate.end}{place}" if fate.end else f"{UNSEEN_END}{place}"


def reason_of(rank: Rank) -> str:
    """Return what `list` says of a rank that has ended; "" where that is unknown."""
    fate = rank.fate
    if fate.failure and rank.exit_code != 0:
        return f"failed: {fate.failure}{f', {fate.end}' if fate.end else ''}"
    return fate.end


def end_of(code: int) -> str:
    """Return how a process has ended, in words."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def held(rank: Rank) -> str:
    """Return what `list` says of a rank that is held at its failure with no client attached."""
    fate = rank.fate
    if fate.held is None or rank.phase.linked:
        return ""
    return f"failed: {fate.failure}, held, {fate.held:.0f} s left"


def note_stop(rank: Rank, stop: Stop | None) -> None:
    """Remember where a rank stands, and of what it is about to fail."""
    if stop is None or not stop.frames:
        return
    frame = stop.frames[stop.own]
    place = f"{base_name(frame.path)}:{frame.line}"
    rank.fate.place = f"{place} in {frame.name}"
    if stop.reason == "exception" and stop.unhandled:
        text = str(stop.details.get("text") or "an exception")
        error = exception_name(text).rsplit(".", 1)[-1]
        rank.fate.failure = f"{error} at {place}"
    else:
        rank.fate.failure = ""


# Processes that a rank has started: debugged as its workers, or told to run on.
#
# A child that pydevd has patched waits until a client attaches to it, so every announcement is
# answered by one more connection to its rank's port. Until it is known whether the child shall be
# debugged it is hidden: it has no row and no number, and clients are told nothing of it. It is
# attached in either case, because it runs on only after `configurationDone` (measured).

# Events of a hidden child that are heard; it is not debugged, so the rest is of no interest.
HEARD = frozenset({"initialized", "terminated", "debugpyAttach", "dapMuxMark"})
MAX_CHILDREN = 1024  # of one rank at once: its word alone has us open no more connections


class Subprocesses(Struct, eq=False):
    """The children that ranks have announced, and their numbers as workers."""

    _core: SessionState
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
        return self._core.flow.wanted and self._core.flow.debugs_children and here

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
