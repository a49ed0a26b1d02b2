"""Waiting for what sends no message: a port, a process, a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_LOOK_AGAIN = 0.01  # seconds


async def until(holds: Callable[[], object], *, within: float, what: str) -> None:
    """Return once `holds()` is true; raise AssertionError naming `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {within} s"
        await asyncio.sleep(_LOOK_AGAIN)
