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
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterator
    from types import FrameType

MAX_FRAMES = 200  # of a thread; the innermost ones
MAX_THREADS = 64
MAX_CHARS = 60_000  # debugpy cuts longer results, and cut JSON is none
ASYNCIO = os.path.dirname(os.__file__) + os.path.join(os.sep, "asyncio", "")  # noqa: PTH118, PTH120
TASKS = ", asyncio tasks"  # behind the name of the thread that runs them
LIBRARIES = ("site-packages", "dist-packages")
DEBUGGERS = ("pydevd", "debugpy", "dap_mux.rank")
OURS = "<builtin dap_mux>"  # the file that injected code is compiled as


def stacks(every_thread: bool, task_trees: str = "") -> str:
    """Return JSON: {"files": [[path, is it a library's]], "functions": [...], "threads": [...]}.

    A thread is [name, is it the main one, frames], a frame [file, function, line], both numbers of
    the lists before; the outermost frame comes first. Without `every_thread`: the main thread's.
    """
    main = threading.main_thread().ident
    found = Found()
    threads, tasks = [], []
    for ident, places, _ in walk(every_thread):
        threads.append([name_of(ident), ident == main, found.add(places)])
        if task_trees and any(place.path.startswith(ASYNCIO) for place in places):
            for frames in _tasks(places, task_trees):
                one = [f"{name_of(ident)}{TASKS}", False, found.add([*map(Place, frames)])]
                tasks += [one] if one not in tasks else []
    return found.as_json(threads[:MAX_THREADS] + tasks[:MAX_THREADS])


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage while frames of other threads are looked at.

    Finalizers would let these threads run on; then CPython 3.11 has made the object of a frame that
    is no more, and crashes when it is used.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _tasks(places: list[Place], source: str) -> list[list[Any]]:
    """Return the frames of a thread's asyncio tasks; none where that fails."""
    module: dict[str, Any] = {}
    try:
        with no_collection():
            exec(compile(source, OURS, "exec"), module)  # noqa: S102  (ours)
            found: list[list[Any]] = module["tasks_of"](places)
    except Exception:  # noqa: BLE001  (private parts of asyncio's, which runs on meanwhile)
        return []
    return [frames for frames in found if frames]


class Place:
    """Where a frame was at one moment; its thread goes on meanwhile.

    Its attributes have the same names as those of a frame.
    """

    def __init__(self, frame: FrameType, line: int = 0) -> None:
        self._frame = frame
        self.f_builtins = frame.f_builtins
        self.f_code = frame.f_code
        self.f_globals = frame.f_globals
        self.f_lasti = frame.f_lasti
        self.f_lineno = line or frame.f_lineno or 0

    @property
    def itself(self) -> FrameType:
        """The frame, which may be elsewhere by now."""
        return self._frame

    @property
    def address(self) -> int:
        """Where the frame's object is in memory, as of CPython."""
        return id(self._frame)

    @property
    def f_locals(self) -> Any:
        """As they are now."""
        return self._frame.f_locals

    @property
    def path(self) -> str:
        """The file that it runs."""
        return self.f_code.co_filename


class Found:
    """The places of frames, with each file and function named once."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._functions: dict[str, int] = {}

    def add(self, places: list[Place]) -> list[list[int]]:
        """Return frames as numbers of the files and functions."""
        return [
            [
                self._files.setdefault(place.path, len(self._files)),
                self._functions.setdefault(place.f_code.co_name, len(self._functions)),
                place.f_lineno,
            ]
            for place in places
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


def walk(every_thread: bool) -> list[tuple[int, list[Place], bool]]:
    """Return each thread's number and the program's frames in it, the main one first.

    The outermost frame comes first; with them, whether the last one is what the thread runs.
    """
    debuggers = _folders_of_debuggers()
    main = threading.main_thread().ident
    walked = []
    with no_collection():
        current = sys._current_frames()  # noqa: SLF001
        for ident, frame in sorted(current.items(), key=lambda one: one[0] != main):
            if (every_thread or ident == main) and not _is_debuggers(ident):
                frames = _frames(frame, debuggers)
                is_running = bool(frames) and frames[-1] is frame
                places = _places_of_exception(ident, debuggers) or [*map(Place, frames)]
                walked.append((ident, places, is_running))
        current.clear()
    return [one for one in walked if _is_of_the_program(one[1]) or _has_ended(one[1])]


def _frames(frame: FrameType | None, debuggers: tuple[str, ...]) -> list[FrameType]:
    frames: list[FrameType] = []
    waits_for: list[FrameType] | None = None  # what is on top of the innermost of the debugger's
    while frame is not None:
        if not frame.f_code.co_filename.startswith(debuggers):
            frames.append(frame)
        elif waits_for is None:
            waits_for = [*frames]
        frame = frame.f_back
    # A stopped thread waits by an event of pydevd's, whose own frames are those of `threading`.
    if waits_for and _is_only_threading(waits_for) and not _is_only_threading(frames):
        del frames[: len(waits_for)]
    del frames[MAX_FRAMES:]
    frames.reverse()
    return frames


def _places_of_exception(ident: int, debuggers: tuple[str, ...]) -> list[Place]:
    """Return the frames of the exception at which debugpy has stopped a thread; all may be over.

    Private interface of debugpy, which shows the same frames to its clients.
    """
    try:
        manager = sys.modules["pydevd"].get_global_debugger().suspended_frames_manager
        stopped = manager.get_frames_list(getattr(thread_of(ident), "__pydevd_id__", None))
        lines, at_exception = stopped.frame_id_to_lineno, stopped.trace_obj is not None
    except (AttributeError, KeyError):  # most threads run, and most processes have no debugger
        return []
    places = [Place(each, lines.get(id(each), 0)) for each in stopped] if at_exception else []
    own = [place for place in places if not place.path.startswith(debuggers)]
    return own[:MAX_FRAMES][::-1]


def _is_only_threading(frames: list[FrameType]) -> bool:
    return all(frame.f_code.co_filename == threading.__file__ for frame in frames)


def _is_of_the_program(places: list[Place]) -> bool:
    """Whether a thread does anything beside what `threading` does around it."""
    return any(
        place.path != threading.__file__ and not place.path.startswith("<frozen")
        for place in places
    )


def _has_ended(places: list[Place]) -> bool:
    """Whether this is a main thread that is done, and waits for the others."""
    first = places[0] if places else None
    shutdown: Any = getattr(threading, "_shutdown", None)
    return first is not None and first.f_code is getattr(shutdown, "__code__", None)


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
