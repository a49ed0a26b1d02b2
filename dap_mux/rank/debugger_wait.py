"""Waits for a debugger before the program starts, within a time limit."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NoReturn, TypeAlias

import debugpy  # noqa: T100

from dap_mux.rank.environ import Place
from dap_mux.rank.options import ON_TIMEOUT, TIMEOUT_CODE, seconds
from dap_mux.rank.ready import say
from dap_mux.rank.starter import STARTER, ends_with_starter, starter_is_gone

OnTimeout: TypeAlias = Literal["exit", "continue"]

STARTER_CHECK_INTERVAL_S = 0.5
POLL_INTERVAL_S = 0.01  # debugpy's own wait polls every 0.02 s
_visits: list[None] = []
"""One entry for each debugger that has attached and configured; it may have left since."""
session_lost = threading.Event()
"""Set while the session that this rank calls does not answer any more."""


def timeout_of(environ: Mapping[str, str]) -> float | None:
    """`DEBUG_TIMEOUT` in seconds; None (forever) where it is not set. Raises ValueError."""
    text = environ.get("DEBUG_TIMEOUT")
    try:
        return seconds(text) if text else None
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"DEBUG_TIMEOUT: {error}") from None


def on_timeout_of(environ: Mapping[str, str]) -> OnTimeout:
    """`DEBUG_ON_TIMEOUT`, "exit" where it is not set. Raises ValueError."""
    text = environ.get("DEBUG_ON_TIMEOUT") or "exit"
    if text not in ON_TIMEOUT:
        raise ValueError(f"DEBUG_ON_TIMEOUT: {text!r} is not one of {', '.join(ON_TIMEOUT)}")
    return "continue" if text == "continue" else "exit"


def note_debugger_visits() -> None:
    """From now on no wait misses a debugger that has gone again by the time it looks.

    debugpy's own looks for who is there now, every 20 ms: a rank whose debugger configured it and
    left at once waited on (measured: 1 of 20). So that wait is ended, too. Private interface of
    debugpy; where it has changed, who comes has to stay for those 20 ms. Call it once.
    """
    with suppress(Exception):
        debugger: Any = sys.modules["pydevd"].get_global_debugger()
        configured = debugger.on_configuration_done

        def note() -> None:
            configured()
            _visits.append(None)
            with suppress(RuntimeError):  # nobody has waited yet
                debugpy.wait_for_client.cancel()

        debugger.on_configuration_done = note


def visits() -> int:
    """Return how many debuggers have attached to this process and configured it so far."""
    return len(_visits)


def wait_or_end(
    place: Place, timeout: float | None, on_timeout: OnTimeout, *, since_start: bool = False
) -> bool:
    """Wait for a debugger; when nobody comes in time, end the process or return False.

    `since_start`: one that came before, and has left, has been waited for.
    """
    if since_start and _visits:
        return True
    try:
        if wait_for_debugger(timeout, with_starter=since_start):
            return True
    except StarterGone:
        if ends_with_starter(os.environ):
            say(place, "was launched by an editor that left before its debugger was ready; exiting")
            _exit()
        say(place, "has no debug session any more; continuing without a debugger")
        return False
    late = f"had no debugger attached within {timeout:g} s"
    if on_timeout == "exit":
        say(place, f"{late}; exiting (DEBUG_ON_TIMEOUT=continue would run it without one)")
        _exit()
    say(place, f"{late}; continuing without one")
    return False


class StarterGone(Exception):
    """The session that launched this rank has gone, and no debugger has ever attached."""


def session_is_gone() -> bool:
    """Whether this rank was launched by a session that is there no more, as far as can be seen."""
    return starter_is_gone(os.environ) or (bool(os.environ.get(STARTER)) and session_lost.is_set())


def _exit() -> NoReturn:
    """End the process, from whichever thread: SystemExit in a thread ends that thread alone."""
    if threading.current_thread() is threading.main_thread():
        sys.exit(TIMEOUT_CODE)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(TIMEOUT_CODE)


def wait_for_debugger(timeout: float | None, *, with_starter: bool = False) -> bool:
    """Wait until a debugger is attached and configured; False after `timeout` seconds.

    `with_starter`: raises `StarterGone` once whoever launched this rank has gone.
    Any number of threads may wait, each within a limit of its own. They sleep here and not in a
    lock of `threading`: these frames are hidden, so a `pause` that comes now stops after them.
    """
    until = None if timeout is None else time.monotonic() + timeout
    seen = len(_visits)
    look = time.monotonic() + STARTER_CHECK_INTERVAL_S
    while not debugpy.is_client_connected() and len(_visits) == seen:
        if until is not None and time.monotonic() >= until:
            return False
        if with_starter and time.monotonic() >= look:
            if session_is_gone():
                raise StarterGone
            look = time.monotonic() + STARTER_CHECK_INTERVAL_S
        time.sleep(POLL_INTERVAL_S)
    return True


def stop_at_first_line() -> None:
    """Stop the main thread as soon as it runs a line of the program; nobody attached: never.

    debugpy does this for `launch` alone, and its ranks are attached to. Its private interface.
    """
    if debugpy.is_client_connected():
        sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI().stop_on_entry()
