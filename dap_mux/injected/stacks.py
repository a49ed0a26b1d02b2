"""The Python stacks of this process's threads, read without stopping any of them.

It works whatever the threads do: run, wait in C, or stand at a breakpoint. A thread that does so
keeps its own frames; those of the debugger on top of them, and its own threads, are left out.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import sysconfig
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import FrameType

MAX_FRAMES = 200  # of a thread; the innermost ones
MAX_THREADS = 64
MAX_CHARS = 60_000  # debugpy cuts longer results, and cut JSON is none
LIBRARIES = ("site-packages", "dist-packages")
DEBUGGERS = ("pydevd", "debugpy", "dap_mux.rank", "dap_mux.injected")
OURS = "<builtin dap_mux>"  # the file that injected code is compiled as


def stacks(every_thread: bool) -> str:
    """Return JSON: {"files": [[path, is it a library's]], "functions": [...], "threads": [...]}.

    A thread is [name, is it the main one, frames], a frame [file, function, line], both numbers of
    the lists before; the outermost frame comes first. Without `every_thread`: the main thread's.
    """
    main = threading.main_thread().ident
    found = Found()
    threads = []
    for ident, lines, _ in walk(every_thread):
        threads.append([name_of(ident), ident == main, found.add(lines)])
    return found.as_json(threads[:MAX_THREADS])


class Found:
    """The places of frames, with each file and function named once."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._functions: dict[str, int] = {}

    def add(self, lines: list[tuple[str, str, int]]) -> list[list[int]]:
        """Return frames as numbers of the files and functions."""
        return [
            [
                self._files.setdefault(path, len(self._files)),
                self._functions.setdefault(function, len(self._functions)),
                line,
            ]
            for path, function, line in lines
        ]

    def names(self) -> dict[str, Any]:
        """The files and functions; of each file, whether it is a library's."""
        libraries = library_folders()
        files = [[path, is_library(path, libraries)] for path in self._files]
        return {"files": files, "functions": [*self._functions]}

    def as_json(self, threads: list[Any]) -> str:
        """Leave out threads, the last first, until it is short enough."""
        names = self.names()
        while True:
            text = json.dumps({**names, "threads": threads}, separators=(",", ":"))
            if len(text) <= MAX_CHARS or not threads:
                return text
            threads = threads[:-1]


def walk(
    every_thread: bool, look: Callable[[int, list[FrameType], bool], Any] | None = None
) -> list[tuple[int, list[tuple[str, str, int]], Any]]:
    """Return each thread's number and the program's frames in it, the main one first.

    `look` is given the number and the frames themselves, the outermost first, and whether the last
    of them is what the thread runs; what it returns comes with them.
    """
    debuggers = _folders_of_debuggers()
    main = threading.main_thread().ident
    # A collection in the midst of this may run finalizers, which let the other threads run on; then
    # CPython 3.11 has made the object of a frame that is no more, and crashes when it is used.
    enabled = gc.isenabled()
    gc.disable()
    try:
        current = sys._current_frames()  # noqa: SLF001
        walked = []
        for ident, frame in sorted(current.items(), key=lambda one: one[0] != main):
            if _is_debuggers(ident) or not (every_thread or ident == main):
                continue
            frames = _frames(frame, debuggers)
            lines = [(f.f_code.co_filename, f.f_code.co_name, f.f_lineno or 0) for f in frames]
            if _is_of_the_program(lines):
                looked = look(ident, frames, frames[-1] is frame) if look is not None else None
                walked.append((ident, lines, looked))
        current.clear()
    finally:
        if enabled:
            gc.enable()
    return walked


def _frames(frame: FrameType | None, debuggers: tuple[str, ...]) -> list[FrameType]:
    frames: list[FrameType] = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(debuggers):
            frames.append(frame)
        frame = frame.f_back
    del frames[MAX_FRAMES:]
    frames.reverse()
    return frames


def _is_of_the_program(lines: list[tuple[str, str, int]]) -> bool:
    """Whether a thread does anything beside what `threading` does around it."""
    return any(path != threading.__file__ and not path.startswith("<frozen") for path, *_ in lines)


def _is_debuggers(ident: int) -> bool:
    thread = thread_of(ident)
    return getattr(thread, "is_pydev_daemon_thread", False) is True


def _folders_of_debuggers() -> tuple[str, ...]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in DEBUGGERS)
    return (OURS, *(os.path.dirname(file) + os.sep for file in files if file))  # noqa: PTH120


def name_of(ident: int) -> str:
    """Return the name of a thread, which may not be known to Python."""
    thread = thread_of(ident)
    return thread.name if thread is not None else "a thread that Python did not start"


def thread_of(ident: int) -> threading.Thread | None:
    """Return a thread, also one that pydevd hides from `threading.enumerate`."""
    thread: threading.Thread | None = threading._active.get(ident)  # type: ignore[attr-defined]  # noqa: SLF001
    return thread


def is_library(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a file is not the user's own; `folders` as of `library_folders`."""
    return path.startswith(("<frozen", *folders)) or any(name in path for name in LIBRARIES)


def library_folders() -> tuple[str, ...]:
    """Return the folders of the standard library."""
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")}
    return tuple(f"{folder}{os.sep}" for folder in folders if folder)
