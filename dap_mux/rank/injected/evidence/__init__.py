"""A process reports its own threads and torch's collectives while it runs on.

No thread is stopped for it, and no code of the program's runs. The helpers are modules of their
own, which a session sends, as sources or compiled; what one of them cannot tell is left out.
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

FILE_NAME = "<builtin dap_mux>"
"""Modules are compiled under this name: frames of it are not told."""
TORCH = os.path.join("torch", "distributed", "")  # noqa: PTH118
TORCH_NAMES = {
    "send": ("dst", "tag"),
    "recv": ("src", "tag"),
    "broadcast": ("src", "group_src"),
    "scatter": ("src", "group_src"),
    "gather": ("dst", "group_dst"),
    "reduce": ("dst", "group_dst"),
    "init_process_group": ("rank", "world_size", "init_method"),
    "_create_c10d_store": ("rank", "world_size", "hostname", "port"),
    "_new_group_with_tag": ("ranks",),
}  # as in pure/insight/why/waits.py
"""Names in functions of torch.distributed, of which no record of gloo's tells."""
MAX_RANKS = 512
SPINNING = "mpi4py."  # waits there use the processor, and show no system call
MAX_CHARS = 60_000  # debugpy cuts longer results, and cut JSON is none

_modules: dict[str, Any] = {}


def evidence(sent: dict[str, Any]) -> str:
    """Return JSON of a `Sample`; `sent`: the other modules, by name."""
    stacks = module(sent, "stacks")
    walked = stacks.walk(True)[: stacks.MAX_THREADS]
    look = Look(sent)
    threads = [({**look.state(ident), **look.at(ident, *rest)}, rest[0]) for ident, *rest in walked]
    flight_recorder = module(sent, "flight_recorder")
    usable = module(sent, "waiting_calls").usable
    told = attempt({}, flight_recorder.recorded)
    calls = module(sent, "open_calls").recorded
    sample: dict[str, Any] = {
        "world_rank": attempt(-1, flight_recorder.world_rank, usable),
        "children": attempt([], lambda: module(sent, "thread_states").children()),
        "finalizing": sys.is_finalizing() or _shuts_down(walked),
        **told,
        **attempt({}, calls, flight_recorder, told.get("collectives", [])),
    }
    return fitting(sample, threads, stacks.Found)


class Look:
    """Looks at the frames of one thread after the other."""

    def __init__(self, sent: dict[str, Any]) -> None:
        self._calls = module(sent, "waiting_calls")
        self._source = module(sent, "source_code")
        self._stacks = module(sent, "stacks")
        self._states = module(sent, "thread_states")
        self._values = module(sent, "static_values")
        self._trees = self._source.Trees()
        self._libraries = self._stacks.library_folders()
        self._exceptions = attempt(None, self._calls.handled, self._stacks)

    def at(self, ident: int, frames: list[Any], is_running: bool) -> dict[str, Any]:
        """Return what the frames of a thread tell; `is_running`: no debugger's are in the last."""
        source, values, trees, calls = self._source, self._values, self._trees, self._calls
        is_library = self._stacks.is_library
        own = [frame for frame in frames if not is_library(frame.path, self._libraries)]
        held = attempt([], calls.holds, ident, frames, own, source, values, trees)
        handled = attempt("", calls.handling, ident, own, self._exceptions, values, trees)
        found: dict[str, Any] = {"holds": held, "handling": handled}
        call = None
        if is_running:
            arguments = frames[-1], source, values, trees
            call, of = attempt((None, None), calls.waiting_call, *arguments)
            if call is not None:
                function = call.get("function", "")
                lock, owner = attempt(("", 0), calls.waited_for, function, of)
                name = self._stacks.name_of(owner) if owner else ""
                call["arguments"] = {**call.get("arguments", {}), **self._names_in_torch(frames)}
                found.update(call=call, lock=lock, owner=name)
        spins = call is not None and call.get("function", "").startswith(SPINNING)
        polls = bool(own) and not spins and attempt(False, self._polls, own[-1])
        found["progress"] = attempt("", values.progress, own, spins, polls)
        return found

    def _polls(self, frame: Any) -> bool:
        around: list[Any] = self._trees.around(frame.f_code, frame.f_lineno)
        return bool(self._source.polls(around))

    def state(self, ident: int) -> dict[str, Any]:
        """Return a thread's name, and what the system tells of it if Python knows it."""
        thread = self._stacks.thread_of(ident)
        tid = thread.native_id if thread is not None else None
        is_main = ident == threading.main_thread().ident
        if is_main:
            tid = os.getpid()
        found = attempt({}, self._states.thread_state, tid) if tid else {}
        if ident == threading.get_ident():  # it is in the call that has read this
            found.update(system_call="", file="")
        return {"name": self._stacks.name_of(ident), "main": is_main, **found}

    def _names_in_torch(self, frames: list[Any]) -> dict[str, Any]:
        """Return what torch's functions were given; what is further in has the last word."""
        found: dict[str, Any] = {}
        for frame in frames:
            names = TORCH_NAMES.get(frame.f_code.co_name, ())
            if names and TORCH in frame.path:
                for name in names:
                    value = attempt(None, self._values.variable, name, frame)
                    if type(value) is list and len(value) <= MAX_RANKS:
                        found[name] = repr([each for each in value if type(each) is int])
                    elif type(value) in (int, str) and value != -1:
                        found[name] = value
        return found


def _shuts_down(walked: list[Any]) -> bool:
    """Whether the main thread waits for the others at the program's end."""
    return any(
        frames[0].path == threading.__file__ and frames[0].f_code.co_name == "_shutdown"
        for ident, frames, _ in walked
        if ident == threading.main_thread().ident
    )


def fitting(sample: dict[str, Any], threads: list[Any], found: Callable[[], Any]) -> str:
    """Return JSON that is short enough: without the oldest collectives, then the last threads."""
    collectives = sample.get("collectives", [])
    while True:
        places = found()
        told = [{**fields, "frames": places.add(frames)} for fields, frames in threads]
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


def module(sent: dict[str, Any], name: str) -> Any:
    """Return a helper, which is run once."""
    if name not in _modules:
        names: dict[str, Any] = {"__name__": f"dap_mux_{name}"}
        code = sent[name]
        if isinstance(code, str):
            code = compile(code, FILE_NAME, "exec")
        exec(code, names)  # noqa: S102  (our own)
        _modules[name] = SimpleNamespace(**names)
    return _modules[name]
