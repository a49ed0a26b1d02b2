"""Which threads of a stopped rank have rows, where only those in user code do.

The rank's own row stays with the thread that it has shown, as long as that stands in user code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dap_mux.engine.state.rank import Frame, Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import MAIN_THREAD, main_thread
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.pure.protocol.rank_messages import (
    CURRENT_FRAME,
    ExceptionInfo,
    Stack,
    StackFrame,
    Thread,
    Threads,
)

MAX_ROWS: Final = 1024  # of one rank
ANY: Final = ("*",)


class UserThreads(Struct, eq=False):
    """The rows of ranks that show their threads in user code."""

    _core: SessionState
    _client_events: ClientEvents

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


# Asks ranks about their stops: the stack, the threads, the exception.

NOT_OWN = frozenset({"subtle", "label"})


def learn_stack(_: UserThreads, __: Rank, stop: Stop, said: Stack) -> None:
    """Keep the frames of a stop, where they were told."""
    if said.stackFrames is None:
        return
    stop.frames = _shared(tuple(map(_frame, said.stackFrames)))
    stop.frame_ids = tuple(frame.id or 0 for frame in said.stackFrames)
    if stop.reason == "exception":
        stop.own = stop.selected = _own(said.stackFrames)
    stop.line_text = said.lineText


@lru_cache(maxsize=1024)
def _shared(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return the stack that others have, too: most ranks stop where another does."""
    return frames


def _frame(said: StackFrame) -> Frame:
    path = said.source.path if said.source else None
    name = str(said.name).removesuffix(CURRENT_FRAME)
    return Frame(path or "", name, said.line or 0)


def _own(frames: list[StackFrame]) -> int:
    """The innermost frame that debugpy does not show as subtle, as it does those of libraries."""
    own = (i for i, frame in enumerate(frames) if frame.presentationHint not in NOT_OWN)
    return next(own, 0)


def learn_threads(rank: Rank, said: Threads) -> None:
    """Keep what a rank's `threads` answered: id to name."""
    if said.threads is not None:
        rank.threads = {thread.id: thread.name for thread in said.threads}


def _learn_threads(user_threads: UserThreads, rank: Rank, stop: Stop, said: Threads) -> None:
    if not user_threads.name(rank, stop, said):
        learn_threads(rank, said)


def _learn_exception(_: UserThreads, __: Rank, stop: Stop, said: ExceptionInfo) -> None:
    stop.unhandled = said.breakMode in (None, "unhandled")


LEARN: dict[str, tuple[type[Struct], Callable[[UserThreads, Rank, Stop, Any], None]]] = {
    "stackTrace": (Stack, learn_stack),
    "threads": (Threads, _learn_threads),
    "exceptionInfo": (ExceptionInfo, _learn_exception),
}
