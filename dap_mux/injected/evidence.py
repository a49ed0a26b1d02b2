"""What this process does, told by itself while it goes on: the threads, and torch's collectives.

No thread is stopped for it, and no code of the program's runs. The helpers are modules of their
own, whose sources a session sends; what one of them cannot tell is left out.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import FrameType

FILE_NAME = "<builtin dap_mux>"
"""Modules are compiled under this name: frames of it are not told."""
MAX_CHARS = 60_000  # debugpy cuts longer results, and cut JSON is none

_modules: dict[str, Any] = {}


def evidence(sources: dict[str, str]) -> str:
    """Return JSON of a `Sample`; `sources`: those of the other modules, by name."""
    stacks = module(sources, "stacks")
    look = Look(sources)
    walked = stacks.walk(True, look.at)[: stacks.MAX_THREADS]
    main = threading.main_thread().ident
    threads = []
    for ident, lines, looked in walked:
        # Asked for only here: the more is asked while all frames are alive, the longer that takes.
        state = attempt({}, look.state, ident)
        named = {"name": stacks.name_of(ident), "main": ident == main}
        threads.append(({**named, **state, **looked}, lines))
    flight_recorder = module(sources, "flight_recorder")
    usable = module(sources, "waiting_calls").usable
    sample: dict[str, Any] = {
        "world_rank": attempt(-1, flight_recorder.world_rank, usable),
        "finalizing": sys.is_finalizing() or _shuts_down(walked),
        **attempt({}, flight_recorder.recorded),
    }
    return fitting(sample, threads, stacks.Found)


class Look:
    """Looks at the frames of one thread after the other."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._calls = module(sources, "waiting_calls")
        self._locks = module(sources, "held_locks")
        self._source = module(sources, "source_code")
        self._stacks = module(sources, "stacks")
        self._states = module(sources, "thread_states")
        self._values = module(sources, "static_values")
        self._trees = self._source.Trees()
        self._users: dict[str, bool] = {}
        self._libraries = self._stacks.library_folders()
        self._exceptions = attempt(None, self._locks.handled)

    def at(self, ident: int, frames: list[FrameType], is_running: bool) -> dict[str, Any]:
        """Return what the frames of a thread tell; `is_running`: no debugger's are in the last."""
        source, values, trees, locks = self._source, self._values, self._trees, self._locks
        own = [frame for frame in frames if self._is_users(frame)]
        held = attempt([], locks.holds, ident, frames, own, source, values, trees)
        handled = attempt("", locks.handling, ident, own, self._exceptions, values, trees)
        found: dict[str, Any] = {"holds": held, "handling": handled}
        if is_running:
            waiting = self._calls.waiting_call
            call, of = attempt((None, None), waiting, frames[-1], source, values, trees)
            if call is not None:
                function = call.get("function", "")
                lock, owner = attempt(("", 0), locks.waited_for, function, of)
                name = self._stacks.name_of(owner) if owner else ""
                found.update(call=call, lock=lock, owner=name)
        return found

    def _is_users(self, frame: FrameType) -> bool:
        file = frame.f_code.co_filename
        if file not in self._users:
            self._users[file] = not self._stacks.is_library(file, self._libraries)
        return self._users[file]

    def state(self, ident: int) -> dict[str, Any]:
        """Return what the system tells of a thread, nothing of one that Python does not know."""
        thread = self._stacks.thread_of(ident)
        tid = thread.native_id if thread is not None else None
        if ident == threading.main_thread().ident:
            tid = os.getpid()
        found: dict[str, Any] = self._states.thread_state(tid) if tid else {}
        if ident == threading.get_ident():  # it is in the call that has read this
            found.update(system_call="", file="")
        return found


def _shuts_down(walked: list[Any]) -> bool:
    """Whether the main thread waits for the others at the program's end."""
    return any(
        lines[0][0] == threading.__file__ and lines[0][1] == "_shutdown"
        for ident, lines, _ in walked
        if ident == threading.main_thread().ident
    )


def fitting(sample: dict[str, Any], threads: list[Any], found: Callable[[], Any]) -> str:
    """Return JSON that is short enough: without the oldest collectives, then the last threads."""
    collectives = sample.get("collectives", [])
    while True:
        places = found()
        told = [{**fields, "frames": places.add(lines)} for fields, lines in threads]
        whole = {**sample, **places.names(), "threads": told, "collectives": collectives}
        text = json.dumps(plain(whole), separators=(",", ":"))
        if len(text) <= MAX_CHARS or not threads:
            return text
        if collectives:
            collectives = collectives[len(collectives) // 2 + 1 :]
        else:
            threads = threads[:-1]


def plain(value: Any) -> Any:
    """Return the same without what is no text: names of files may be anything."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {plain(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def attempt(otherwise: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; what fails loses nothing else."""
    try:
        return function(*arguments)
    except Exception:  # noqa: BLE001  (the program's objects and torch's private parts may be anything)
        return otherwise


def module(sources: dict[str, str], name: str) -> Any:
    """Return a helper, which is compiled once."""
    if name not in _modules:
        names: dict[str, Any] = {"__name__": f"dap_mux_{name}"}
        exec(compile(sources[name], FILE_NAME, "exec"), names)  # noqa: S102  (our own source)
        _modules[name] = SimpleNamespace(**names)
    return _modules[name]
