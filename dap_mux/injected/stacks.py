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
    found = _Found()
    for ident, lines in _walk(main, every_thread):
        found.add(_name_of(ident), ident == main, lines)
    return found.as_json()


class _Found:
    """Threads, with each file and function named once."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._functions: dict[str, int] = {}
        self._threads: list[Any] = []

    def add(self, name: str, is_main: bool, lines: list[tuple[str, str, int]]) -> None:
        frames = [
            [
                self._files.setdefault(path, len(self._files)),
                self._functions.setdefault(function, len(self._functions)),
                line,
            ]
            for path, function, line in lines
        ]
        self._threads.append([name, is_main, frames])

    def as_json(self) -> str:
        """Leave out threads, the last first, until it is short enough."""
        files = [[path, _is_library(path)] for path in self._files]
        threads = self._threads[:MAX_THREADS]
        while True:
            text = json.dumps(
                {"files": files, "functions": [*self._functions], "threads": threads},
                separators=(",", ":"),
            )
            if len(text) <= MAX_CHARS or not threads:
                return text
            threads = threads[:-1]


def _walk(main: int | None, every_thread: bool) -> list[tuple[int, list[tuple[str, str, int]]]]:
    """Return the program's frames in each thread, the main one first."""
    debuggers = _folders_of_debuggers()
    # A collection in the midst of this may run finalizers, which let the other threads run on; then
    # CPython 3.11 has made the object of a frame that is no more, and crashes when it is used.
    enabled = gc.isenabled()
    gc.disable()
    try:
        frames = sys._current_frames()  # noqa: SLF001
        walked = [
            (ident, _lines(frame, debuggers))
            for ident, frame in sorted(frames.items(), key=lambda one: one[0] != main)
            if every_thread or ident == main
        ]
        frames.clear()
    finally:
        if enabled:
            gc.enable()
    return [
        (ident, lines)
        for ident, lines in walked
        if _is_of_the_program(lines) and not _is_debuggers(ident)
    ]


def _lines(frame: FrameType | None, debuggers: tuple[str, ...]) -> list[tuple[str, str, int]]:
    lines: list[tuple[str, str, int]] = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(debuggers):
            lines.append((code.co_filename, code.co_name, frame.f_lineno or 0))
        frame = frame.f_back
    del lines[MAX_FRAMES:]
    lines.reverse()
    return lines


def _is_of_the_program(lines: list[tuple[str, str, int]]) -> bool:
    """Whether a thread does anything beside what `threading` does around it."""
    return any(path != threading.__file__ and not path.startswith("<frozen") for path, *_ in lines)


def _is_debuggers(ident: int) -> bool:
    thread = _thread(ident)
    return getattr(thread, "is_pydev_daemon_thread", False) is True


def _folders_of_debuggers() -> tuple[str, ...]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in DEBUGGERS)
    return (OURS, *(os.path.dirname(file) + os.sep for file in files if file))  # noqa: PTH120


def _name_of(ident: int) -> str:
    thread = _thread(ident)
    return thread.name if thread is not None else "a thread that Python did not start"


def _thread(ident: int) -> threading.Thread | None:
    """Return a thread, also one that pydevd hides from `threading.enumerate`."""
    thread: threading.Thread | None = threading._active.get(ident)  # type: ignore[attr-defined]  # noqa: SLF001
    return thread


def _is_library(path: str) -> bool:
    if path.startswith("<frozen") or any(name in path for name in LIBRARIES):
        return True
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")}
    return path.startswith(tuple(f"{folder}{os.sep}" for folder in folders if folder))
