"""Waiting for what sends no message: a port, a process, a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_LOOK_AGAIN = 0.01  # seconds
_REST = 4  # times as long as the look took: what is waited for needs the processor, too


async def until(holds: Callable[[], object], *, within: float, what: str) -> None:
    """Return once `holds()` is true; raise AssertionError naming `what` after `within` seconds."""
    began = time.monotonic()
    deadline = began + within
    while not holds():
        looked = time.monotonic()
        assert looked < deadline, f"{what}: not within {within} s"
        await asyncio.sleep(max(_LOOK_AGAIN, _REST * (looked - began)))
        began = time.monotonic()
