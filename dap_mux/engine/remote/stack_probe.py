"""The expression that asks a rank for its stacks, and its answer: `injected.evidence.stacks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dap_mux.engine.remote.injected_sources import call
from dap_mux.errors import PeerFault
from dap_mux.insight.stack_tree import Frame, Stack
from dap_mux.pathmap import RankPaths

MAX_FRAMES: Final = 200  # of a thread, the innermost ones


class Stacks(Struct):
    """A rank's answer; `functions` and `files` are named by their places in the lists."""

    files: list[tuple[str, bool]]
    functions: list[str]
    threads: list[tuple[str, bool, list[tuple[int, int, int]]]]


def ask(source: str, task_trees: str = "", *, every_thread: bool) -> str:
    """Return an expression for `stacks.stacks`; `task_trees`: that of asyncio tasks."""
    return call(source, "stacks", repr(every_thread), repr(task_trees))


def stacks_of(told: Stacks, paths: RankPaths) -> Iterator[tuple[str, Stack]]:
    """Yield the name and the stack of each thread, with the session's paths.

    Raises `PeerFault` for a frame of a file or function that was not listed.
    """
    files = [(paths.to_local(path) or path, library) for path, library in told.files]
    for name, _, frames in told.threads:
        yield name, tuple(_frame(told, files, frame) for frame in frames[-MAX_FRAMES:])


def _frame(told: Stacks, files: Sequence[tuple[str, bool]], frame: tuple[int, int, int]) -> Frame:
    file, function, line = frame
    if not (0 <= file < len(files) and 0 <= function < len(told.functions)):
        raise PeerFault("a frame of a file or function that is not listed")
    path, library = files[file]
    return Frame(path, told.functions[function], line, library)
