"""Asks ranks about their stops: the stack, the threads, the exception."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.stop import Frame, Stop
from dap_mux.engine.stops.user_threads import UserThreads
from dap_mux.protocol.rank_messages import ExceptionInfo, Stack, StackFrame, Threads

CURRENT = " (Current frame)"  # what debugpy appends to the frame that raised
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
    name = str(said.name).removesuffix(CURRENT)
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
