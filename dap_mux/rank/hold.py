"""Wait for a debugger before the program starts, but not for ever."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, NoReturn, TypeAlias

import debugpy  # noqa: T100

from dap_mux.rank.environ import Place
from dap_mux.rank.options import ON_TIMEOUT, TIMEOUT_CODE, seconds
from dap_mux.rank.ready import say

OnTimeout: TypeAlias = Literal["exit", "continue"]

_turn = threading.Lock()
"""debugpy can end one wait only, the last begun: threads wait one after another."""
_ending = threading.Lock()
"""Held while a wait is ended: nobody else's may begin meanwhile."""
LOOK_AGAIN = 0.01  # s


def timeout_of(environ: Mapping[str, str]) -> float | None:
    """`DEBUG_TIMEOUT` in seconds; None (for ever) where it is not set. Raises ValueError."""
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


def wait_or_end(place: Place, timeout: float | None, on_timeout: OnTimeout) -> bool:
    """Wait for a debugger; when nobody comes in time, end the process or return False."""
    if wait_for_debugger(timeout):
        return True
    late = f"had no debugger attached within {timeout:g} s"
    if on_timeout == "exit":
        say(place, f"{late}; it exits (DEBUG_ON_TIMEOUT=continue would run it without one)")
        _exit()
    say(place, f"{late}; it runs on without one")
    return False


def _exit() -> NoReturn:
    """End the process, from whichever thread: SystemExit in a thread ends that thread alone."""
    if threading.current_thread() is threading.main_thread():
        sys.exit(TIMEOUT_CODE)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(TIMEOUT_CODE)


def wait_for_debugger(timeout: float | None) -> bool:
    """Wait until a debugger is attached and configured; False after `timeout` seconds.

    Any number of threads may wait, each within a limit of its own.
    """
    until = None if timeout is None else time.monotonic() + timeout
    if _turn.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
        try:
            if not debugpy.is_client_connected():
                _wait(None if until is None else until - time.monotonic())
        finally:
            _turn.release()
    return timeout is None or bool(debugpy.is_client_connected())


def _wait(timeout: float | None) -> None:
    if timeout is None:
        debugpy.wait_for_client()  # noqa: T100
        return
    over = threading.Event()
    clock = _hidden_timer(max(timeout, 0), over)
    clock.start()
    try:
        debugpy.wait_for_client()  # noqa: T100
    finally:
        with _ending:
            over.set()
        clock.cancel()


def stop_at_first_line() -> None:
    """Stop the main thread as soon as it runs a line of the program; nobody attached: never.

    debugpy does this for `launch` alone, and its ranks are attached to. Its private interface.
    """
    if debugpy.is_client_connected():
        sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI().stop_on_entry()


def _hidden_timer(seconds: float, over: threading.Event) -> threading.Timer:
    """A timer that ends the wait, and that debugpy does not show among the user's threads."""
    clock = threading.Timer(seconds, _end_the_wait, [over])
    clock.daemon = True
    # The marks that debugpy puts on threads of its own.
    clock.pydev_do_not_trace = True  # type: ignore[attr-defined]
    clock.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    return clock


def _end_the_wait(over: threading.Event) -> None:
    """End it also where it has not begun yet: only then is there the function that can.

    Until then it is missing, or an earlier wait's, which does no harm.
    """
    while not over.wait(LOOK_AGAIN):
        with _ending, suppress(RuntimeError):
            if not over.is_set():  # else it might be the next one's
                debugpy.wait_for_client.cancel()
