"""Which threads of a stopped rank have rows, where only those in user code do.

The rank's own row stays with the thread that it has shown, as long as that stands in user code.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.stop import Stop
from dap_mux.engine.state.threads import MAIN_THREAD, main_thread
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.protocol.rank_messages import Thread, Threads

MAX_ROWS: Final = 1024  # of one rank
ANY: Final = ("*",)


class UserThreads:
    """The rows of ranks that show their threads in user code."""

    def __init__(self, core: SessionState, client_events: ClientEvents) -> None:
        self._core = core
        self._client_events = client_events

    def stopped(self, rank: Rank, stop: Stop, said: Iterable[Thread]) -> None:
        """A rank has stopped: keep the threads that have rows, and tell which have none now."""
        if not self._shown(rank):
            return
        before = _own_rows(rank)
        shown = {stop.thread: rank.threads.get(stop.thread, "")}
        shown.update(_wanted(rank, stop, said))
        if rank.stepping and rank.home in rank.threads:
            shown.setdefault(rank.home, rank.threads[rank.home])  # no row moves during a step
        if not shown[stop.thread]:
            del shown[stop.thread]  # its name has yet to be asked for
        rank.home = _home(rank, stop, shown)
        rank.threads = dict(sorted(shown.items(), key=lambda one: (one[0] != rank.home, one[0])))
        self._client_events.threads_left(rank, sorted(before - _own_rows(rank)))

    def late(self, rank: Rank, said: Iterable[Thread]) -> None:
        """Threads came to stand in user code after the stop of their rank was told."""
        stop = rank.stop
        if stop is None or not self._shown(rank):
            return
        wanted = _wanted(rank, stop, said)
        room = MAX_ROWS - len(rank.threads)
        new = [id for id in wanted if id not in rank.threads][:room]
        rank.threads.update({id: wanted[id] for id in new})
        if new and stop.announced:
            self._client_events.threads_stand(rank, new)

    def name(self, rank: Rank, stop: Stop, said: Threads) -> bool:
        """Name a thread that has stopped outside user code; it has a row all the same.

        False where all threads have rows, or one for each rank: then all names are kept.
        """
        if not self._shown(rank):
            return False
        names = {thread.id: thread.name for thread in said.threads or ()}
        rank.threads[stop.thread] = names.get(stop.thread, "")
        return True

    def _shown(self, rank: Rank) -> bool:
        return self._core.rows_of(rank) == "user"


def _wanted(rank: Rank, stop: Stop, said: Iterable[Thread]) -> dict[int, str]:
    patterns = rank.endpoint.traits.user_threads or ANY
    threads = list(said)[:MAX_ROWS]
    return {
        one.id: one.name
        for one in threads
        if one.id == stop.thread or any(fnmatchcase(one.name, pattern) for pattern in patterns)
    }


def _home(rank: Rank, stop: Stop, shown: dict[int, str]) -> int:
    if rank.home in shown:
        return rank.home
    return next((id for id, name in shown.items() if name == MAIN_THREAD), stop.thread)


def _own_rows(rank: Rank) -> set[int]:
    """The threads with rows of their own: not the one that the rank's row shows."""
    return rank.threads.keys() - {main_thread(rank)}
