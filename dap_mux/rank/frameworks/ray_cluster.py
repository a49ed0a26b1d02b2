"""Reports the actors of a running Ray cluster as ranks, and makes them ranks from outside."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from dap_mux.rank.frameworks import lines

POLL_INTERVAL_S = 1.0
LEAVE_LIMIT_S = 4.0
HOW_TO_CONNECT = (
    "name the cluster as in ray:HOST:6379, or set RAY_ADDRESS, on one of the cluster's own machines"
)
HOW_TO_AUTHENTICATE = (
    "this cluster wants a token: set RAY_AUTH_TOKEN_PATH to its file, or copy ~/.ray/auth_token "
    "from the machine that started it"
)


def main(options: dict[str, Any]) -> None:
    """Report the ranks until the session leaves or the cluster ends.

    Ray ends a process that is connected to a cluster when that ends: so it is a child of ours.
    """
    connected, is_connected = os.pipe()
    child = os.fork()
    if not child:
        os.close(connected)
        _report(options, is_connected)
        return
    os.close(is_connected)
    was_connected = bool(os.read(connected, 1))
    _, status = os.waitpid(child, 0)
    if status and was_connected:
        lines.report(end=True)
    sys.exit(os.waitstatus_to_exitcode(status) and not was_connected)


def _report(options: dict[str, Any], is_connected: int) -> None:
    _connect(str(options.get("endpoint") or os.environ.get("RAY_ADDRESS") or "auto"))
    os.write(is_connected, b"1")
    from dap_mux.rank.frameworks.ray_actors import Actors  # noqa: PLC0415  (needs the connection)

    actors = Actors(str(options.get("debugpy") or ""))
    left = threading.Event()
    threading.Thread(target=_wait_for_end, args=(left,), daemon=True).start()
    if not _follow(actors, left):
        sys.exit(1)
    actors.release(LEAVE_LIMIT_S)


def _connect(address: str) -> None:
    """Connect as a driver of its own, which starts nothing."""
    if "RAY_AUTH_MODE" not in os.environ and _has_token():
        os.environ["RAY_AUTH_MODE"] = "token"
    import ray  # noqa: PLC0415  (it reads the variable)

    connect = partial(ray.init, log_to_driver=False, configure_logging=False, _skip_env_hook=True)
    try:
        connect(address, namespace="dap-mux")
    except Exception as error:  # noqa: BLE001  (Ray raises whatever its parts raise)
        text = " ".join(str(error).split())
        unauthenticated = "token" in text.lower()
        help_text = HOW_TO_AUTHENTICATE if unauthenticated else HOW_TO_CONNECT
        lines.fail(f"cannot connect to the Ray cluster at {address!r}: {text[:400]}", help_text)


def _has_token() -> bool:
    named = any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return named or (Path.home() / ".ray" / "auth_token").is_file()


def _wait_for_end(left: threading.Event) -> None:
    lines.read_session(lambda _stopped: None)  # Ray's time-outs take no worker that is stopped
    left.set()


# The tables of the GCS say who is there; no dashboard is needed. Each actor is asked to listen by
# `__ray_call__`, which waits for its turn behind the methods that are running. A worker that waits
# in Ray's own `breakpoint()` listens already, and is taken as it is.
def _follow(actors: Any, left: threading.Event) -> bool:
    """Report the ranks whenever they change; False once the cluster does not respond any more."""
    last: list[dict[str, Any]] | None = None
    while not left.is_set():
        try:
            present = actors.look()
        except Exception:  # noqa: BLE001  (Ray raises whatever its parts raise)
            return False
        if present != last:
            lines.report(ranks=present)
            last = present
        until = time.monotonic() + POLL_INTERVAL_S
        while not left.is_set() and time.monotonic() < until and not actors.has_news():
            left.wait(POLL_INTERVAL_S / 10)
    return True
