"""Wait for a debugger before the program starts, but not for ever."""

from __future__ import annotations

import sys
import threading

import debugpy  # noqa: T100


def wait_for_debugger(timeout: float | None) -> bool:
    """Wait until a debugger is attached and configured; False after `timeout` seconds."""
    if timeout is None:
        debugpy.wait_for_client()  # noqa: T100
        return True
    clock = _hidden_timer(timeout)
    clock.start()
    try:
        debugpy.wait_for_client()  # noqa: T100
    finally:
        clock.cancel()
    return bool(debugpy.is_client_connected())


def stop_at_first_line() -> None:
    """Stop the main thread as soon as it runs a line of the program; nobody attached: never.

    debugpy does this for `launch` alone, and its ranks are attached to. Its private interface.
    """
    if debugpy.is_client_connected():
        sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI().stop_on_entry()


def _hidden_timer(seconds: float) -> threading.Timer:
    """A timer that ends the wait, and that debugpy does not show among the user's threads."""
    clock = threading.Timer(seconds, _end_the_wait)
    clock.daemon = True
    # The marks that debugpy puts on threads of its own.
    clock.pydev_do_not_trace = True  # type: ignore[attr-defined]
    clock.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    return clock


def _end_the_wait() -> None:
    debugpy.wait_for_client.cancel()  # the wait has put this function there
