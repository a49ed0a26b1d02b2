"""Makes a process a rank while Python starts: listen, report that, wait for a debugger.

This runs before there is a `__main__`, so none of our frames are below the program's. A failure
must end the process directly: Python would treat SystemExit as a crash at this point.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from dap_mux.rank.environ import COMM, COMM_FILE, MARK, Place, claimed_place, place_of, said_place
from dap_mux.rank.libraries import DRIVER_THREADS, MONARCH, RAY, watch_import
from dap_mux.rank.ready import RENDEZVOUS, say
from dap_mux.rank.start.run_module import lend
from dap_mux.rank.starter import STARTER, dying_of_ctrl_c

HOOK_OPTIONS = "DAP_MUX_HOOK"
FOR_WORKERS = (
    RENDEZVOUS,
    HOOK_OPTIONS,
    COMM,
    COMM_FILE,
    "DAP_MUX_DIAL",
    "DAP_MUX_DIAL_TOKEN",
    "DAP_MUX_DIAL_TOKEN_FILE",
    "DAP_MUX_DIAL_TIMEOUT",
    "DEBUG_TIMEOUT",
    "DEBUG_ON_TIMEOUT",
    STARTER,
)
"""The variables that the workers of a framework need, which may not inherit the driver's."""
OWN_FAILURE_CODE = 125
TRAITS_OF_DASK = {"userThreads": DRIVER_THREADS, "swallowsExceptions": True}
"""An editor reads the default exception filters before any worker is there, so the driver has those
of its workers."""


@dataclass(frozen=True)
class HookOptions:
    """What `dap-mux run` wants of ranks; JSON in the variable DAP_MUX_HOOK.

    `debugpy`: the folder of a debugpy for Pythons that have none. `outer`: see `claim`.
    """

    base_port: int = 5678
    wait: bool = True
    stop_on_entry: bool = False
    debugpy: str = ""
    outer: dict[str, str] = field(default_factory=dict)


def take_part() -> None:
    """Become a rank, if this process is one and the session that has started it can be reached."""
    place = claimed_place(os.environ, _orders().outer, sys.orig_argv, os.getpid())
    if place is not None and not joins_session(place):
        os.environ[MARK] = str(os.getpid())  # its children say nothing more
        say_out_of_reach(place)


def worker_sets(name: bytes, value: bytes) -> None:
    """A worker is about to set one of the variables that say its rank: the last makes it one."""
    if os.environ.get(MARK) == str(os.getpid()) or not _is_worker():
        return
    orders = _orders()
    place = said_place({**os.environ, os.fsdecode(name): os.fsdecode(value)}, orders.outer)
    if place is not None:
        become(place, orders)


def note_failure(folder: str, error: BaseException | None) -> None:
    """Write down the exception that ends a process which is no rank, for who has started it."""
    from dap_mux.rank.black_box import note_launcher  # noqa: PLC0415  (it needs more than this)

    note_launcher(Path(folder), error)


def watch(loader: Any, name: str, call: Callable[..., None]) -> None:
    """Become the rank that a library says, when the module `name` of it is told; see `libraries`.

    `call` calls a function of this module, whatever has become of it by then.
    """
    watch_import(loader, name, partial(call, BEGINNINGS.get(name, "told_by")))


def ray_begins(runtime_env: Any, users_hook: str) -> Any:
    """A driver of Ray calls `ray.init()`: return the runtime environment for its workers."""
    # By name: it imports this module.
    driver = import_module("dap_mux.rank.frameworks.ray_driver")
    return driver.adapt_runtime_env(runtime_env, users_hook, _orders())


def monarch_begins(proc_mesh: Any) -> None:
    """A driver of Monarch has imported the module by which it will spawn procs."""
    spawns = import_module("dap_mux.rank.frameworks.monarch_spawns")  # by name, as above
    spawns.debug_driver_and_procs(proc_mesh, _orders())


BEGINNINGS = {MONARCH: "monarch_begins", RAY: "ray_begins"}
"""The functions here that are told when these modules begin."""


def told_by(library: str, rank: int, world_size: int) -> None:
    """A library knows which rank this process is: no news for a rank, nor for a rank's child."""
    if MARK in os.environ:
        return
    own = place_of({**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world_size)})
    group, traits = ("client", TRAITS_OF_DASK) if library == "dask" else (None, None)
    become(replace(own, launcher=library, group=group), _orders(), traits)


def _orders() -> HookOptions:
    return HookOptions(**json.loads(os.environ.get(HOOK_OPTIONS) or "{}"))


def for_workers() -> dict[str, str]:
    """Return those of this process that its framework's workers need."""
    return {name: os.environ[name] for name in FOR_WORKERS if name in os.environ}


def _is_worker() -> bool:
    """Whether `multiprocessing` has started this process; any other fork is about to exec."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def joins_session(place: Place, traits: Mapping[str, object] | None = None) -> bool:
    """Become a rank of the session that has started the job; False where it is out of reach."""
    folder = os.environ.get(RENDEZVOUS)
    if os.environ.get("DAP_MUX_DIAL") or (folder and Path(folder).is_dir()):
        become(place, _orders(), traits)
        return True
    return False


def say_out_of_reach(place: Place) -> None:
    """Tell the user why this process is no rank."""
    say(
        place,
        f"runs on {socket.gethostname()}, out of the session's reach, and is not debugged: with "
        "`dap-mux run --dial`, ranks on other machines connect to the session",
    )


def become(place: Place, orders: HookOptions, traits: Mapping[str, object] | None = None) -> None:
    """Make this process a rank: returns when its program may start.

    `traits`: what its framework knows; see `dap_mux.rank.api.Setup`.
    """
    os.environ[MARK] = str(os.getpid())  # before anything starts a child, as debugpy does
    lend(
        "dap_mux", str(Path(__file__).parents[2])
    )  # for good: programs may call `dap_mux.settrace`
    try:
        with dying_of_ctrl_c():
            _find_debugpy(place, orders)
            _start(place, orders, traits or {})
    except SystemExit as end:
        _end(end.code if isinstance(end.code, int) else OWN_FAILURE_CODE)
    except Exception as error:  # noqa: BLE001  (Python would go on, and nobody would come)
        _fail(place, f"cannot be debugged: {error}")


def _start(place: Place, orders: HookOptions, traits: Mapping[str, object]) -> None:
    from dap_mux.rank.api import Setup, start  # noqa: PLC0415  (it needs debugpy)
    from dap_mux.rank.debugger_wait import on_timeout_of, timeout_of  # noqa: PLC0415

    start(
        Setup(
            place=place,
            base_port=orders.base_port,
            wait=orders.wait,
            timeout=timeout_of(os.environ),
            on_timeout=on_timeout_of(os.environ),
            stop_on_entry=orders.stop_on_entry,
            quiet=True,
            traits=traits,
        )
    )


def _find_debugpy(place: Place, orders: HookOptions) -> None:
    """The job's own debugpy, else the one of dap-mux: it is pure Python where it has to be."""
    if find_spec("debugpy") is None and orders.debugpy:
        lend("debugpy", orders.debugpy)
    try:
        import debugpy  # noqa: F401, PLC0415, T100
    except ImportError as error:
        python = sys.executable
        _fail(place, f"has no debugpy ({error}): {python} -m pip install debugpy")


def _fail(place: Place, why: str) -> NoReturn:
    say(place, why)
    _end(OWN_FAILURE_CODE)


def _end(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
