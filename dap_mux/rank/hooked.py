"""What the hook does in a process that is a rank: listen, say so, wait, let the program start.

It runs while Python starts, before there is a `__main__`: nothing of ours is below the program's
frames, and a failure has to end the process itself, for Python takes SystemExit there for a crash.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from dap_mux.rank.claim import MARK, claimed_place
from dap_mux.rank.environ import Place
from dap_mux.rank.ready import record_of, say, write_ready_file

RENDEZVOUS = "DAP_MUX_RENDEZVOUS"
ORDERS = "DAP_MUX_HOOK"
OWN_FAILURE_CODE = 125


@dataclass(frozen=True)
class Orders:
    """What `dap-mux run` wants of ranks; JSON in the variable DAP_MUX_HOOK.

    `debugpy`: the folder of a debugpy for Pythons that have none. `outer`: see `claim`.
    """

    base_port: int = 5678
    wait: bool = True
    stop_on_entry: bool = False
    debugpy: str = ""
    outer: dict[str, str] = field(default_factory=dict)


def take_part() -> None:
    """Be a rank, if this process is one."""
    orders = Orders(**json.loads(os.environ.get(ORDERS) or "{}"))
    place = claimed_place(os.environ, orders.outer, sys.orig_argv, os.getpid())
    if place is not None:
        become(place, orders)


def become(place: Place, orders: Orders) -> None:
    """Make this process a rank: returns when its program may start."""
    os.environ[MARK] = str(os.getpid())  # before anything starts a child, as debugpy does
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    _find_debugpy(place, orders)
    from dap_mux.rank.hide import hide_our_frames  # noqa: PLC0415  (they need debugpy)
    from dap_mux.rank.listen import CannotListen, candidate_ports, listen  # noqa: PLC0415

    first = orders.base_port + (place.rank or 0)
    try:
        host, port = listen("127.0.0.1", candidate_ports(first, place.world_size or 1))
    except CannotListen as error:
        _fail(place, f"cannot listen for a debugger: {error}")
    hide_our_frames()
    _report(place, host, port)
    if orders.wait:
        _wait()
    if orders.stop_on_entry:
        from dap_mux.rank.hold import stop_at_first_line  # noqa: PLC0415

        stop_at_first_line()


def _find_debugpy(place: Place, orders: Orders) -> None:
    """The job's own debugpy, else the one of dap-mux; it is pure Python where it has to be."""
    if importlib.util.find_spec("debugpy") is None and orders.debugpy:
        from dap_mux.rank.hook.sitecustomize import borrow  # noqa: PLC0415

        borrow("debugpy", orders.debugpy)
    try:
        import debugpy  # noqa: F401, PLC0415, T100
    except ImportError as error:
        _fail(
            place,
            f"cannot be debugged: {sys.executable} has no debugpy ({error}); "
            f"{sys.executable} -m pip install debugpy",
        )


def _report(place: Place, host: str, port: int) -> None:
    path = Path(os.environ[RENDEZVOUS]) / f"{socket.gethostname()}-{os.getpid()}.json"
    try:
        write_ready_file(path, record_of(place, host, port))
    except OSError as error:
        _fail(place, f"cannot say where it listens: {path.parent}: {error.strerror}")


def _wait() -> None:
    from dap_mux.rank.hold import wait_for_debugger  # noqa: PLC0415

    # Python takes a KeyboardInterrupt here for a crash of its own.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    wait_for_debugger(None)
    signal.signal(signal.SIGINT, before)


def _fail(place: Place, why: str) -> NoReturn:
    say(place, why)
    os._exit(OWN_FAILURE_CODE)
