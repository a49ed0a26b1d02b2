"""Turns the watch of this process's communication on and off, before torch is there too."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm import session
from dap_mux.rank.comm.kernels import Watch
from dap_mux.rank.comm.mpi import MPI, MpiWatch
from dap_mux.rank.comm.operations import Operations
from dap_mux.rank.comm.record import C10D, Record
from dap_mux.rank.comm.steps import Steps
from dap_mux.rank.comm.trace import Trace
from dap_mux.rank.environ import COMM_FILE, COMM_MODES, EQUAL, OPERATIONS, STEP

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Iterable
    from types import ModuleType


class _State:
    """The watch, once torch.distributed is there, and the finder that waits for it."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.steps: Steps | None = None
        self.operations: Operations | None = None
        self.trace: Trace | None = None
        self.asked = self.mode = "off"
        self.rank: int | None = None
        self.finder: _Finder | None = None
        self.mpi: MpiWatch | None = None
        self.mpi_finder: _Finder | None = None
        self.guards: dict[str, Any] = {}
        self.waiting: list[Callable[[], object]] = []
        self.waiting_for_mpi: list[Callable[[], object]] = []


_state = _State()


class _Finder:
    """Among the finders of modules: begins a watch when torch, or mpi4py, has been imported."""

    def __init__(self, begin: Callable[[], object], *watched: str) -> None:
        self._begin = begin
        self._watched = watched
        sys.meta_path.insert(0, self)

    def end(self) -> None:
        """Be none of them any more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find these modules as the others do, and have their loader tell; find nothing else."""
        if name not in self._watched:
            return None
        others = [each for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec: Any = next((spec for spec in found if spec is not None), None)
        execute = getattr(spec and spec.loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            with suppress(AttributeError):
                del spec.loader.exec_module
            execute(module)
            if name != C10D or not _is_importing("torch"):
                self._begin()

        with suppress(AttributeError):  # a loader of somebody's that lets nothing be set
            spec.loader.exec_module = exec_module
        return spec


def _is_importing(name: str) -> bool:
    """Whether a module is being imported, or looked for: no new finder is asked for it any more.

    A rank on a busy machine looked for torch on the disk while its guard came: it never began.
    """
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if getattr(spec, "_initializing", False):
        return True
    locks: Any = getattr(import_module("importlib._bootstrap"), "_module_locks", {})
    lock = locks.get(name)
    return lock is not None and lock() is not None


def begin(mode: str, log: Callable[[str], object], rank: int | None = None) -> None:
    """Record calls once torch.distributed has been imported, or end that; `log` is told of failure.

    `mode`: one of `environ.COMM_MODES`, or "take": the inputs' hashes alone; or "replay": none of
    torch's kernels is left, who is called `when_started` puts others there. `rank`: the number in
    the name of its trace.
    """
    _state.asked, _state.rank = mode, rank
    _in_main_thread(lambda: _take(log), log)


def when_started(call: Callable[[], object]) -> None:
    """Call this once the watch has begun, or at its place in a replay."""
    _state.waiting.append(call)
    if _state.watch is not None:
        _call_waiting(_state.waiting)


def when_mpi(call: Callable[[], object]) -> None:
    """Call this once mpi4py's communicators are watched, or in their watch's place in a replay."""
    _state.waiting_for_mpi.append(call)


def guarded(name: str) -> Any:
    """Return the guard of that name, None for none."""
    return _state.guards.get(name)


def guard(name: str, guard: Any) -> None:
    """Record at least what this guard's `mode` says; None: there is none of that name.

    Its `begin` is called once torch is there, its `begin_mpi` once mpi4py is, its `end` when
    another takes its place.
    """

    before = _state.guards.pop(name, None)
    if guard is not None:
        _state.guards[name] = guard
    elif before is None:
        return

    def change() -> None:
        _end([before])
        _take(session.log)
        if guard is not None and _state.watch is not None and not guard.began:
            guard.begin()
        if guard is not None and _state.mpi is not None:
            guard.begin_mpi(_state.mpi)

    _in_main_thread(change, session.log)


def _in_main_thread(function: Callable[[], object], log: Callable[[str], object]) -> None:
    """Call this in the main thread between two of its instructions, for a second at most.

    torch's dispatcher reads its table without a lock: where another thread put a kernel there, a
    call in between failed ("fallthrough_kernel was executed", 1 of 4,000 times, measured).
    """
    if threading.current_thread() is threading.main_thread() or C10D not in sys.modules:
        function()
        return
    done = threading.Event()

    def call(_: Any) -> int:
        try:
            function()
        finally:
            done.set()
        return 0

    kept = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)
    _pending.append(kept)  # for good: the interpreter has its address
    if ctypes.pythonapi.Py_AddPendingCall(kept, None) or not done.wait(1.0):
        log("its main thread waits in C: that is done as soon as Python code runs there")


_pending: list[Any] = []


def _take(log: Callable[[str], object]) -> None:
    modes = [_state.asked, *(each.mode for each in _state.guards.values())]
    usual = _state.asked in COMM_MODES
    _state.mode = mode = max(modes, key=COMM_MODES.index) if usual else _state.asked
    _watch_mpi(log)
    if mode == "off":
        end()
    elif _state.watch is not None:
        _take_mode()
    elif _state.finder is not None:
        return
    elif C10D in sys.modules and not _is_importing("torch"):
        _start(log)
    elif _is_importing("torch"):  # in another thread: no finder is asked for it any more
        _once_imported("torch", lambda: _start(log))
    else:
        _state.finder = _Finder(lambda: _start(log), "torch", C10D)


def _once_imported(name: str, begin: Callable[[], object]) -> None:
    def wait() -> None:
        with suppress(Exception):  # the program's import has failed, and says so there
            import_module(name)  # waits for the import that is under way
            begin()

    threading.Thread(target=wait, daemon=True).start()


def _watch_mpi(log: Callable[[str], object]) -> None:
    """Begin or change the watch of mpi4py's communicators, once these are there."""
    mode = "hash" if _state.mode == OPERATIONS else _state.mode
    if mode == "off":
        return
    if _state.mpi is not None:
        _state.mpi.mode = mode
    elif MPI in sys.modules:
        _take_mpi(mode, log)
    elif _is_importing(MPI):
        _once_imported(MPI, lambda: _watch_mpi(log))
    elif _state.mpi_finder is None:
        _state.mpi_finder = _Finder(lambda: _watch_mpi(log), MPI)


def _take_mpi(mode: str, log: Callable[[str], object]) -> None:
    try:
        if mode != "replay":
            _start_mpi(MpiWatch(mode, log))
        _call_waiting(_state.waiting_for_mpi)
    except Exception as error:  # noqa: BLE001  (private parts of mpi4py: the job goes on)
        is_other = threading.current_thread() is not threading.main_thread()
        if is_other and _is_importing(MPI):  # no finder is asked for it any more
            _once_imported(MPI, lambda: _watch_mpi(log))
            return
        version = getattr(sys.modules["mpi4py"], "__version__", "?")
        log(f"records no calls with mpi4py {version}: {type(error).__name__}: {error}")


def _start_mpi(watch: MpiWatch) -> None:
    watch.record.from_start = _state.mpi_finder is not None
    _state.mpi = watch
    _begin_trace(watch.record)
    for each in [*_state.guards.values()]:
        each.begin_mpi(watch)
    atexit.register(end)  # before MPI is finalised


def _start(log: Callable[[str], object]) -> None:
    if C10D not in sys.modules or _state.watch is not None:
        return
    _end([_state.finder])
    _state.finder = None
    try:
        if _state.mode == "replay":
            _call_waiting(_state.waiting)
            return
        _state.watch = watch = Watch(_state.mode, log)
        if "torch.optim.optimizer" in sys.modules:
            _state.steps = Steps(watch.record, watch.fails)
        _take_mode()
        _trace_torch(watch)
        _call_waiting(_state.waiting)
        for each in [*_state.guards.values()]:
            each.begin()
        atexit.register(end)  # works are let go of while torch is still whole
    except Exception as error:
        replays, _state.mode = _state.mode == "replay", "off"
        version = getattr(sys.modules["torch"], "__version__", "?")
        if replays:  # alone, it would compute something else
            raise SystemExit(f"cannot replay with torch {version}: {error!r}") from error
        log(f"records no communication calls with torch {version}: {type(error).__name__}: {error}")


def _call_waiting(waiting: list[Callable[[], object]]) -> None:
    while waiting:
        waiting.pop(0)()


def _begin_trace(record: Record) -> Trace | None:
    """Write the calls of a record to this process's trace, where one is asked for."""
    folder = os.environ.get(COMM_FILE, "")
    if not folder:
        return None
    if _state.trace is None:
        _state.trace = Trace(folder, _state.rank)
    _state.trace.follow(record)
    return _state.trace


def _trace_torch(watch: Watch) -> None:
    trace = _begin_trace(watch.record)
    if trace is None:
        return
    if _state.steps is not None:
        _state.steps.ended.append(trace.step)
        _state.steps.sums = True
        _state.steps.equal = json.loads(os.environ.get(EQUAL) or "[]")
        if os.environ.get(STEP):
            _state.steps.end_at(os.environ[STEP])
    if _state.mode == OPERATIONS:
        _state.operations = Operations(trace.add, watch.fails)


def _take_mode() -> None:
    mode = "hash" if _state.mode == OPERATIONS else _state.mode
    if _state.watch is not None:
        _state.watch.mode = mode
    if _state.steps is not None:
        _state.steps.mode = mode
        _state.steps.whole = _state.mode == OPERATIONS


def _end(there: Iterable[Any]) -> None:
    for each in there:
        if each is not None:
            each.end()


def end() -> None:
    """Record no calls any more; torch is as it was."""
    atexit.unregister(end)
    _state.mode = "off"
    by_mpi = (_state.mpi, _state.mpi_finder)
    by_torch = (_state.operations, _state.trace, _state.steps, _state.watch, _state.finder)
    _state.mpi = _state.mpi_finder = _state.finder = None
    _state.operations = _state.trace = _state.steps = _state.watch = None
    _end([*by_mpi, *by_torch])


def mpi() -> MpiWatch | None:
    """Return what watches mpi4py's communicators, None where nothing does."""
    return _state.mpi


def mode() -> str:
    """Return the mode that is wanted, one of `environ.COMM_MODES`."""
    return _state.mode


def record() -> Record | None:
    """Return the record, None where nothing is recorded."""
    return _state.watch.record if _state.watch is not None else None


def steps() -> Steps | None:
    """Return what follows the optimizers, None where nothing does."""
    return _state.steps


def watch() -> Watch | None:
    """Return the kernels in front of torch's, None where there are none."""
    return _state.watch


def why_unwatched(*packages: str) -> str:
    """Return why what these packages send is not seen here; "" where it is, or may come to be."""
    torch = sys.modules.get("torch")
    if torch is None:
        found = any(map(find_spec, packages))
        return "" if found else "it has " + " and ".join(f"no {each}" for each in packages)
    if watch() is None and C10D in sys.modules:
        return f"its torch {torch.__version__} cannot be watched"
    return ""


def _in_forked_child() -> None:
    """No thread of a backend is in it that could complete works: none is destroyed there either."""
    if _state.watch is not None:
        _parents.append(_state.watch.record.kept)
        _state.watch.record.__init__()  # type: ignore[misc]


_parents: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
